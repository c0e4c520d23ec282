//! The policy as a file: TOML in, [`Policy`] or every mistake in it out.
//!
//! Nothing is taken for what it might have meant: an unknown key, class or rule is a mistake, and so is a class that
//! a name is removed from without having been in it, since such a line does not do what it says.

use std::ops::Range;

use policy::image::{
    Allow, AllowState, Binding, Class, Classes, Digest, ImagePath, Policy, Rule, Severity, Thresholds,
    Visibility,
};
use policy::{Instant, Mistake};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads a policy that extends the built-in one, as it counts at `now`.
///
/// # Errors
/// Every [`Mistake`], in the order of the file.
pub fn parse(text: &str, now: Instant) -> Result<Policy, Vec<Mistake>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let today = now.to_string().chars().take("YYYY-MM-DD".len()).collect();
    let mut reader = Reader { text, today, policy: Policy::default(), mistakes: Vec::new() };
    for error in errors {
        reader.wrong(error.span().unwrap_or(0..0), error.message());
    }
    // What could be made of broken TOML is a guess, and mistakes in a guess are noise.
    if reader.mistakes.is_empty() {
        reader.top(table.get_ref());
    }
    reader.mistakes.sort();
    reader.mistakes.dedup();
    if reader.mistakes.is_empty() { Ok(reader.policy) } else { Err(reader.mistakes) }
}

/// The built-in policy, written so that reading it gives it back.
pub fn default_text() -> String {
    let mut lines = vec![
        "# The built-in policy of image-audit. A policy of your own needs only what differs.".to_owned(),
        "extends = \"default\"".into(),
        String::new(),
        "# From this severity on a finding fails the build, in every view: info, low, medium or high.".into(),
        "# Or by view: fail_on = { merged = \"high\", ambiguous = \"high\", hidden = \"high\" }".into(),
        "fail_on = \"high\"".into(),
        String::new(),
        "# What each rule weighs. A severity that a policy sets is final; forbidden-binary weighs less than this".into(),
        "# on a name alone, unless the policy says otherwise.".into(),
    ];
    for rule in Rule::ALL {
        lines.push(format!("# [rules.{}]", rule.name()));
        lines.push(format!("# severity = \"{}\"", rule.severity().name()));
    }
    for class in Class::ALL {
        lines.extend([String::new(), format!("[classes.{}]", class.name()), "add = [".into()]);
        let classes = Classes::default();
        let names: Vec<_> = classes.names(class).map(|name| format!("\"{name}\"")).collect();
        lines.extend(names.chunks(6).map(|row| format!("    {},", row.join(", "))));
        lines.push("]".into());
    }
    lines.extend(ALLOW_EXAMPLE.lines().map(str::to_owned));
    lines.push(String::new());
    lines.join("\n")
}

const ALLOW_EXAMPLE: &str = "
# What is allowed all the same: one rule at one path, for a reason, until a day.
# [[allow]]
# rule = \"setuid\"
# path = \"usr/bin/su\"
# digest = \"sha256:…\"        # of the file's content; or any = true, which the report says out loud
# reason = \"login shell of the rescue image\"
# owner = \"platform@example.com\"
# expires = 2027-03-01        # the last day on which it counts";

type Value<'i> = Spanned<DeValue<'i>>;

struct Reader<'t> {
    text: &'t str,
    today: String,
    policy: Policy,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn wrong(&mut self, span: Range<usize>, what: impl Into<String>) {
        self.mistakes.push(Mistake::at(self.text, span.start, what));
    }

    fn top(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "extends" => {
                    if value.get_ref().as_str() != Some("default") {
                        self.wrong(
                            value.span(),
                            "extends must be \"default\", the one policy there is to extend",
                        );
                    }
                }
                "fail_on" => self.thresholds(value),
                "rules" => self.tables(value, Self::rule),
                "classes" => self.tables(value, Self::class),
                "allow" => self.allows(value),
                other => {
                    let what = format!(
                        "unknown key {other:?}: extends, fail_on, rules, classes and allow are known"
                    );
                    self.wrong(key.span(), what);
                }
            }
        }
    }

    fn thresholds(&mut self, value: &Value<'_>) {
        if let Some(table) = value.get_ref().as_table() {
            for (key, value) in table {
                let view = Visibility::ALL.into_iter().find(|view| view.name() == key.get_ref());
                match (view, self.severity(value)) {
                    (None, _) => self.wrong(key.span(), "a view is one of merged, ambiguous, hidden"),
                    (_, None) => {}
                    (Some(Visibility::Merged), Some(severity)) => self.policy.fail_on.merged = severity,
                    (Some(Visibility::Ambiguous), Some(severity)) => self.policy.fail_on.ambiguous = severity,
                    (Some(Visibility::Hidden), Some(severity)) => self.policy.fail_on.hidden = severity,
                }
            }
        } else if let Some(severity) = self.severity(value) {
            self.policy.fail_on = Thresholds::all(severity);
        }
    }

    fn severity(&mut self, value: &Value<'_>) -> Option<Severity> {
        let severity = value.get_ref().as_str().and_then(Severity::parse);
        if severity.is_none() {
            self.wrong(value.span(), "a severity is one of \"info\", \"low\", \"medium\", \"high\"");
        }
        severity
    }

    /// A table of tables, each handed on with its name.
    fn tables(
        &mut self,
        value: &Value<'_>,
        each: fn(&mut Self, &Spanned<std::borrow::Cow<'_, str>>, &DeTable<'_>),
    ) {
        let Some(tables) = value.get_ref().as_table() else {
            return self.wrong(value.span(), "it must be a table");
        };
        for (name, value) in tables {
            match value.get_ref().as_table() {
                Some(table) => each(self, name, table),
                None => self.wrong(value.span(), "it must be a table"),
            }
        }
    }

    fn rule(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>, table: &DeTable<'_>) {
        let rule = Rule::parse(name.get_ref());
        if rule.is_none() {
            self.wrong(name.span(), format!("unknown rule {:?}", name.get_ref()));
        }
        for (key, value) in table {
            if key.get_ref() != "severity" {
                self.wrong(key.span(), format!("unknown key {:?}: a rule has a severity", key.get_ref()));
            } else if let (Some(severity), Some(rule)) = (self.severity(value), rule) {
                self.policy.severities.insert(rule, severity);
            }
        }
    }

    fn class(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>, table: &DeTable<'_>) {
        let Some(class) = Class::parse(name.get_ref()) else {
            let known = Class::ALL.map(Class::name).join(", ");
            return self.wrong(name.span(), format!("unknown class {:?}: {known} are known", name.get_ref()));
        };
        for (key, value) in table {
            let names = self.names(value);
            match key.get_ref().as_ref() {
                "add" => names.iter().for_each(|(name, _)| self.policy.classes.add(class, name)),
                "remove" => {
                    for (name, span) in names {
                        if !self.policy.classes.remove(class, &name) {
                            self.wrong(span, format!("{name:?} is not in {}", class.name()));
                        }
                    }
                }
                other => self.wrong(key.span(), format!("unknown key {other:?}: a class has add and remove")),
            }
        }
    }

    fn names(&mut self, value: &Value<'_>) -> Vec<(String, Range<usize>)> {
        let Some(list) = value.get_ref().as_array() else {
            self.wrong(value.span(), "it must be a list of names");
            return Vec::new();
        };
        let mut names = Vec::new();
        for item in list {
            match item.get_ref().as_str() {
                Some(name) if !name.is_empty() && !name.contains('/') => {
                    names.push((name.to_owned(), item.span()));
                }
                _ => self.wrong(item.span(), "a name is a text without a slash, and not empty"),
            }
        }
        names
    }

    fn allows(&mut self, value: &Value<'_>) {
        let Some(list) = value.get_ref().as_array() else {
            return self.wrong(value.span(), "it must be written [[allow]]");
        };
        for item in list {
            match item.get_ref().as_table() {
                Some(table) => self.allow(item.span(), table),
                None => self.wrong(item.span(), "it must be a table"),
            }
        }
    }

    fn allow(&mut self, span: Range<usize>, table: &DeTable<'_>) {
        let known = ["rule", "path", "digest", "any", "reason", "owner", "expires"];
        for (key, _) in table {
            if !known.contains(&key.get_ref().as_ref()) {
                self.wrong(
                    key.span(),
                    format!("unknown key {:?}: {} are known", key.get_ref(), known.join(", ")),
                );
            }
        }
        let rule = self.text(&span, table, "rule").and_then(|(text, span)| {
            let rule = Rule::parse(&text);
            rule.is_none().then(|| self.wrong(span, format!("unknown rule {text:?}")));
            rule
        });
        let path =
            self.text(&span, table, "path").and_then(|(text, span)| match ImagePath::unescape(&text) {
                Ok(path) if !path.is_root() => Some(path),
                Ok(_) => {
                    self.wrong(span, "a path names a file, not the root");
                    None
                }
                Err(error) => {
                    self.wrong(span, format!("cannot {error}"));
                    None
                }
            });
        let (reason, owner) = (self.text(&span, table, "reason"), self.text(&span, table, "owner"));
        let (binding, expires) = (self.binding(&span, table), self.expires(&span, table));
        if let (Some(rule), Some(path), Some((reason, _)), Some((owner, _)), Some(binding), Some(expires)) =
            (rule, path, reason, owner, binding, expires)
        {
            // The day itself still counts; ISO dates are in order as texts.
            let state = if expires < self.today { AllowState::Expired } else { AllowState::InForce };
            self.policy.allows.push(Allow { rule, path, binding, reason, owner, expires, state });
        }
    }

    /// A text that must be there and say something.
    fn text(
        &mut self,
        span: &Range<usize>,
        table: &DeTable<'_>,
        key: &str,
    ) -> Option<(String, Range<usize>)> {
        let Some(value) = table.get(key) else {
            self.wrong(span.clone(), format!("an allowance needs {key}"));
            return None;
        };
        let text = value.get_ref().as_str().filter(|text| !text.trim().is_empty());
        if text.is_none() {
            self.wrong(value.span(), format!("{key} must be a text that says something"));
        }
        Some((text?.to_owned(), value.span()))
    }

    fn binding(&mut self, span: &Range<usize>, table: &DeTable<'_>) -> Option<Binding> {
        match (table.get("digest"), table.get("any")) {
            (Some(digest), None) => {
                let parsed = digest.get_ref().as_str().and_then(Digest::parse);
                if parsed.is_none() {
                    self.wrong(digest.span(), "a digest is sha256: and 64 small hexadecimal digits");
                }
                parsed.map(Binding::Digest)
            }
            (None, Some(any)) if any.get_ref().as_bool() == Some(true) => Some(Binding::Any),
            (None, Some(any)) => {
                self.wrong(any.span(), "any is true, or it is left out");
                None
            }
            (Some(_), Some(any)) => {
                self.wrong(any.span(), "an allowance is bound to a digest, or any = true: not both");
                None
            }
            (None, None) => {
                self.wrong(
                    span.clone(),
                    "an allowance needs the digest of the file's content, or any = true",
                );
                None
            }
        }
    }

    fn expires(&mut self, span: &Range<usize>, table: &DeTable<'_>) -> Option<String> {
        let Some(value) = table.get("expires") else {
            self.wrong(span.clone(), "an allowance needs expires, its last day");
            return None;
        };
        let instant = value.get_ref().as_datetime();
        let date = instant.filter(|d| d.time.is_none() && d.offset.is_none()).and_then(|d| d.date);
        if date.is_none() {
            self.wrong(value.span(), "expires is a date without quotes, like 2027-03-01");
        }
        date.map(|date| date.to_string())
    }
}

#[cfg(test)]
mod tests;
