//! What is held against one inode, why, and what to do about it.

use super::{
    Class, Digest, FileCapability, Form, ImagePath, Kind, Policy, Rule, Severity, Subject, Visibility,
};

/// How a thing is known, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// It stands in the inode's own bits, or in the archive's bytes.
    Metadata,
    /// The package database owns the path and the content still matches.
    Package,
    /// The content is known by its digest.
    Digest,
    /// A build-id, module path or audit section in the program.
    BuildId,
    /// A multicall program's own table of applets.
    AppletTable,
    /// Two anchored strings in one program.
    Strings,
    /// The libraries that it needs.
    Libraries,
    /// Its name alone.
    Name,
}

impl Rung {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Package => "package",
            Self::Digest => "digest",
            Self::BuildId => "build-id",
            Self::AppletTable => "applet-table",
            Self::Strings => "strings",
            Self::Libraries => "libraries",
            Self::Name => "name",
        }
    }
}

/// One reason to believe a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// How strong.
    pub rung: Rung,
    /// What was seen, as text that is safe to print.
    pub what: String,
}

/// One thing that is held against an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The class of program, for [`Rule::ForbiddenBinary`].
    pub class: Option<Class>,
    /// How much it weighs.
    pub severity: Severity,
    /// Where.
    pub path: ImagePath,
    /// Every name that it goes by.
    pub names: Vec<ImagePath>,
    /// In which view.
    pub visibility: Visibility,
    /// The inode's 12 bits.
    pub mode: Option<u16>,
    /// Names of the capabilities that it gives.
    pub capabilities: Vec<String>,
    /// Why, strongest first.
    pub evidence: Vec<Evidence>,
    /// The number of the allowance that covers it, in the policy's order.
    pub allowed_by: Option<usize>,
    /// What to write in the Dockerfile.
    pub remedy: String,
}

impl Finding {
    /// A finding on an image or a blob of it, not on an inode: its path is the root.
    pub fn of_image(rule: Rule, what: String, remedy: &str, policy: &Policy) -> Self {
        Self {
            rule,
            class: None,
            severity: policy.severity(rule, rule.severity()),
            path: ImagePath::root(),
            names: Vec::new(),
            visibility: Visibility::Merged,
            mode: None,
            capabilities: Vec::new(),
            evidence: vec![Evidence { rung: Rung::Metadata, what }],
            allowed_by: None,
            remedy: remedy.to_owned(),
        }
    }
}

const SETUID: u16 = 0o4000;
const SETGID: u16 = 0o2000;
const STICKY: u16 = 0o1000;
const OTHERS_WRITE: u16 = 0o0002;

/// Directories that the loader, the shells or the system's services look programs and libraries up in.
const LOOKED_UP_IN: &str = "bin sbin lib lib32 lib64 usr/bin usr/sbin usr/lib usr/lib32 usr/lib64 usr/libexec \
                            usr/local/bin usr/local/sbin usr/local/lib usr/local/lib64 opt/bin root/bin \
                            usr/lib/x86_64-linux-gnu usr/lib/aarch64-linux-gnu lib/x86_64-linux-gnu \
                            lib/aarch64-linux-gnu etc/profile.d etc/ld.so.conf.d etc/cron.d etc/init.d etc";

fn looked_up_in(path: &ImagePath) -> bool {
    LOOKED_UP_IN.split_whitespace().any(|directory| directory.as_bytes() == path.as_bytes())
}

/// Everything that `policy` holds against `subject`, in the order of the rules.
pub fn findings(subject: &Subject, policy: &Policy) -> Vec<Finding> {
    let mut found = mode_findings(subject, policy);
    found.extend(capability_finding(subject, policy));
    found.extend(overlay_finding(subject, policy));
    found.extend(anomaly_finding(subject, policy));
    found.extend(device_finding(subject, policy));
    found.extend(forbidden_findings(subject, policy));
    for finding in &mut found {
        finding.allowed_by = allowed_by(policy, finding, subject.digest);
        if let Some(note) = &subject.note {
            finding.evidence.push(Evidence { rung: Rung::Metadata, what: note.clone() });
        }
    }
    found
}

fn allowed_by(policy: &Policy, finding: &Finding, digest: Option<Digest>) -> Option<usize> {
    policy.allows.iter().position(|allow| allow.covers(finding.rule, &finding.path, digest))
}

/// A finding on `subject` with the parts that every rule fills in alike.
fn held(subject: &Subject, policy: &Policy, rule: Rule) -> Finding {
    Finding {
        rule,
        class: None,
        severity: policy.severity(rule, rule.severity()),
        path: subject.names.first().cloned().unwrap_or_default(),
        names: subject.names.clone(),
        visibility: subject.visibility,
        mode: Some(subject.mode),
        capabilities: Vec::new(),
        evidence: Vec::new(),
        allowed_by: None,
        remedy: String::new(),
    }
}

fn mode_findings(subject: &Subject, policy: &Policy) -> Vec<Finding> {
    let is = |bits| subject.mode & bits != 0;
    let metadata = |rule, what: &str, command: &str| {
        let what = format!("{what} {:04o}", subject.mode);
        let mut finding = held(subject, policy, rule);
        finding.evidence.push(Evidence { rung: Rung::Metadata, what });
        finding.remedy = remedy(subject, &format!("{command} {}", quoted(&finding.path)));
        finding
    };
    match &subject.kind {
        Kind::Directory => {
            let mut found = Vec::new();
            if is(SETUID) || is(SETGID) {
                found.push(metadata(Rule::SetidDirectory, "the directory's mode is", "chmod ug-s"));
            }
            if is(OTHERS_WRITE) && !is(STICKY) {
                let path = subject.names.iter().any(looked_up_in);
                let rule = if path { Rule::WritablePathDir } else { Rule::WorldWritable };
                found.push(metadata(rule, "anyone may write to the directory, its mode is", "chmod o-w"));
            }
            found
        }
        Kind::File => {
            let script =
                if subject.form == Form::Script { "the kernel ignores it on a script; " } else { "" };
            let rules = [
                (SETUID, Rule::Setuid, format!("{script}the file's mode is"), "chmod u-s"),
                (SETGID, Rule::Setgid, format!("{script}the file's mode is"), "chmod g-s"),
                (
                    OTHERS_WRITE,
                    Rule::WorldWritable,
                    "anyone may write to it, its mode is".into(),
                    "chmod o-w",
                ),
            ];
            let rules = rules.iter().filter(|(bits, ..)| is(*bits));
            rules.map(|(_, rule, what, command)| metadata(*rule, what, command)).collect()
        }
        // Neither an engine nor the kernel heeds the bits of a symlink; a device is a finding of its own.
        Kind::Symlink(_) | Kind::CharDevice(..) | Kind::BlockDevice(..) | Kind::Fifo | Kind::Socket => {
            Vec::new()
        }
    }
}

fn capability_finding(subject: &Subject, policy: &Policy) -> Option<Finding> {
    let value = subject.capability.as_ref()?;
    let mut finding = held(subject, policy, Rule::FileCapability);
    let what = match FileCapability::parse(value) {
        Ok(granted) => {
            let refused = if granted.version == 1 { ", which current kernels refuse" } else { "" };
            let root =
                granted.root_id.map(|id| format!(" for the namespace of user {id}")).unwrap_or_default();
            let raised = if granted.effective { "raised at start" } else { "not raised at start" };
            let what = format!(
                "security.capability version {}{refused}, {raised}{root}: {}",
                granted.version,
                granted.names.join(", ")
            );
            finding.capabilities = granted.names;
            what
        }
        Err(malformed) => format!("cannot {malformed}"),
    };
    finding.evidence.push(Evidence { rung: Rung::Metadata, what });
    finding.remedy = remedy(subject, &format!("setcap -r {}", quoted(&finding.path)));
    Some(finding)
}

fn overlay_finding(subject: &Subject, policy: &Policy) -> Option<Finding> {
    let mut finding = held(subject, policy, Rule::OverlayXattr);
    finding.evidence.extend(subject.overlay_xattrs.iter().map(|name| Evidence {
        rung: Rung::Metadata,
        what: format!("it carries the attribute {}, which overlayfs obeys", super::escape(name)),
    }));
    finding.remedy = "build the layer without it: no honest build tool writes this attribute".into();
    (!finding.evidence.is_empty()).then_some(finding)
}

fn anomaly_finding(subject: &Subject, policy: &Policy) -> Option<Finding> {
    let mut finding = held(subject, policy, Rule::FormatAnomaly);
    let seen = subject.anomalies.iter();
    finding.evidence = seen.map(|what| Evidence { rung: Rung::Metadata, what: what.clone() }).collect();
    finding.remedy =
        "make the archive again with a common tool; readers of tar disagree about this one".into();
    (!finding.evidence.is_empty()).then_some(finding)
}

fn device_finding(subject: &Subject, policy: &Policy) -> Option<Finding> {
    let (kind, major, minor) = match subject.kind {
        Kind::CharDevice(major, minor) => ("character", major, minor),
        Kind::BlockDevice(major, minor) => ("block", major, minor),
        Kind::File | Kind::Directory | Kind::Symlink(_) | Kind::Fifo | Kind::Socket => return None,
    };
    let mut finding = held(subject, policy, Rule::DeviceNode);
    finding
        .evidence
        .push(Evidence { rung: Rung::Metadata, what: format!("a {kind} device {major}:{minor}") });
    finding.remedy = remedy(subject, &format!("rm {}", quoted(&finding.path)));
    Some(finding)
}

/// One finding for each forbidden class that a name of the file belongs to.
fn forbidden_findings(subject: &Subject, policy: &Policy) -> Vec<Finding> {
    let link = match subject.kind {
        Kind::File => None,
        // A link whose target is not in this view may find it in another, or in a volume.
        Kind::Symlink(ref target) => Some(super::escape(target)),
        Kind::Directory | Kind::CharDevice(..) | Kind::BlockDevice(..) | Kind::Fifo | Kind::Socket => {
            return Vec::new();
        }
    };
    let mut found: Vec<Finding> = Vec::new();
    for name in subject.names.iter().chain(&subject.links) {
        for (class, head) in policy.classes.of(name.base()) {
            let known = found.iter().position(|f| f.class == Some(class));
            let at = known.unwrap_or_else(|| {
                found.push(forbidden(subject, policy, class, name));
                found.len() - 1
            });
            let shown = super::escape(name.base());
            let alias = if shown == head { String::new() } else { format!(", one of the family {head:?}") };
            let what = match &link {
                Some(target) => format!("a symlink named {shown:?}{alias}, to {target:?}, which is not here"),
                None => format!("a {} named {shown:?}{alias}", form_name(subject.form)),
            };
            if let Some(finding) = found.get_mut(at) {
                finding.evidence.push(Evidence { rung: Rung::Name, what });
            }
        }
    }
    found
}

fn forbidden(subject: &Subject, policy: &Policy, class: Class, path: &ImagePath) -> Finding {
    let evident = match (&subject.kind, subject.form) {
        (Kind::File, Form::Elf | Form::Script | Form::Unseen) => Severity::Medium,
        _ => Severity::Low,
    };
    let mut finding = held(subject, policy, Rule::ForbiddenBinary);
    finding.severity = policy.severity(Rule::ForbiddenBinary, evident);
    finding.class = Some(class);
    finding.path = path.clone();
    finding.names = subject.names.iter().chain(&subject.links).cloned().collect();
    finding.remedy = remedy(subject, &format!("rm {}", quoted(path)));
    finding
}

const fn form_name(form: Form) -> &'static str {
    match form {
        Form::Elf => "program (ELF)",
        Form::Script => "script",
        Form::Other => "file that is no program",
        Form::Empty => "file with nothing in it",
        Form::Unseen => "file whose content was not seen",
    }
}

/// What to write in the Dockerfile: the command, in the layer that brought the file in.
fn remedy(subject: &Subject, command: &str) -> String {
    match subject.visibility {
        Visibility::Merged => {
            format!("RUN {command}   # in the RUN that brings it, or it stays in that layer's blob")
        }
        Visibility::Ambiguous => {
            format!("RUN {command}   # and build the layer without what makes engines disagree")
        }
        Visibility::Hidden => format!(
            "put `{command}` into the RUN that brings it, or build in an earlier stage and COPY only what is needed: \
             a later layer takes nothing out of an earlier one's blob"
        ),
    }
}

/// The path from the root, quoted for a shell.
fn quoted(path: &ImagePath) -> String {
    let text = format!("/{path}");
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+,@%".contains(&b));
    if plain {
        return text;
    }
    // `$'…'` undoes the escapes that printing put in; a quote within is written as its byte.
    format!("$'{}'", text.replace('\'', "\\x27"))
}
