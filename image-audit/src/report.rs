//! The report: what was found, what was read, and the verdict that follows.

mod human;
mod json;

use std::collections::{BTreeMap, BTreeSet};

use policy::image::{
    Allow, AllowState, Binding, Digest, Finding, Policy, Subject, Verdict, Visibility, escape, findings,
    verdict,
};
use sha2::{Digest as _, Sha256};

use crate::content::finish;
use crate::merge::Seen;
use crate::tally::{Incomplete, ReadCounts, Tally};

/// A layer as reports name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerName {
    /// Its number, from 0.
    pub index: usize,
    /// The digest of its tar.
    pub diff_id: Digest,
    /// The history line that made it; `None` where history and layers do not match one to one.
    pub created_by: Option<String>,
}

/// An image as reports name it. A plain folder is an image without layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// `linux/amd64`.
    pub platform: Option<String>,
    /// Of its manifest, where it has one.
    pub manifest_digest: Option<Digest>,
    /// Of its configuration, where it has one.
    pub config_digest: Option<Digest>,
    /// Lowest first.
    pub layers: Vec<LayerName>,
}

/// A finding with what the shell adds to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// What is held against the image.
    pub finding: Finding,
    /// The number of the image in the report.
    pub image: usize,
    /// The layer that brought it.
    pub layer: Option<LayerName>,
    /// The same over rebuilds: of rule, class, path and view, never of content or layer.
    pub fingerprint: String,
    /// The reason, owner and last day of the allowance that covers it.
    pub allowed_by: Option<String>,
}

/// What one scan came to.
#[derive(Debug, Clone)]
pub struct Report {
    /// The source as the caller named it.
    pub source: String,
    /// Every image in it.
    pub images: Vec<Image>,
    /// Everything held against them, heaviest first.
    pub findings: Vec<Reported>,
    /// What was not read.
    pub incomplete: Vec<Incomplete>,
    /// What was.
    pub read: ReadCounts,
    policy: Policy,
}

impl Report {
    /// A report of nothing yet.
    pub(crate) fn new(source: String, policy: &Policy) -> Self {
        Self {
            source,
            images: Vec::new(),
            findings: Vec::new(),
            incomplete: Vec::new(),
            read: ReadCounts::default(),
            policy: policy.clone(),
        }
    }

    /// Whether all of the source was read.
    pub fn is_complete(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// What the scan comes to. Run nothing from an image unless this is [`Verdict::Clean`].
    pub fn verdict(&self) -> Verdict {
        verdict(&self.policy, self.findings.iter().map(|r| &r.finding), self.is_complete())
    }

    /// The findings that make the verdict: not allowed, at or over the threshold of their view.
    pub fn counting(&self) -> impl Iterator<Item = &Reported> {
        self.findings.iter().filter(|r| self.policy.counts(&r.finding))
    }

    /// Allowances that covered nothing: what they were for is gone, or their day has passed.
    pub fn idle_allowances(&self) -> impl Iterator<Item = (&Allow, &'static str)> {
        let used: BTreeSet<_> = self.findings.iter().filter_map(|r| r.finding.allowed_by).collect();
        let idle = self.policy.allows.iter().enumerate().filter(move |(number, _)| !used.contains(number));
        idle.map(|(_, allow)| {
            (
                allow,
                if allow.state == AllowState::Expired { "expired" } else { "covers nothing in this image" },
            )
        })
    }

    /// The report as JSON, schema `image-audit/1`, with a newline at its end.
    pub fn to_json(&self) -> String {
        json::render(self)
    }

    /// The report for people, without colour.
    pub fn to_human(&self) -> String {
        human::render(self)
    }

    /// Holds the rules against an image's views and adds it.
    pub(crate) fn add_image(&mut self, image: Image, seen: &[Seen]) {
        let number = self.images.len();
        let mut found: Vec<(Finding, Option<LayerName>)> = Vec::new();
        for Seen { subject, layer } in seen {
            let layer = image.layers.get(*layer);
            found.extend(findings(subject, &self.policy).into_iter().map(|f| (f, layer.cloned())));
        }
        self.images.push(image);
        self.add(number, without_echoes(found));
    }

    fn add(&mut self, image: usize, mut found: Vec<(Finding, Option<LayerName>)>) {
        found.sort_by(|(a, a_layer), (b, b_layer)| {
            order(a, a_layer.as_ref()).cmp(&order(b, b_layer.as_ref()))
        });
        let mut occurrences: BTreeMap<String, u32> = BTreeMap::new();
        for (finding, layer) in found {
            let key = key(&finding);
            let occurrence = occurrences.entry(key.clone()).or_default();
            let fingerprint = fingerprint(&key, *occurrence);
            *occurrence += 1;
            let allow = finding.allowed_by.and_then(|n| self.policy.allows.get(n));
            let allowed_by = allow.map(|allow| {
                let content = if allow.binding == Binding::Any { ", whatever the content" } else { "" };
                escape(
                    format!("{} ({}, until {}{content})", allow.reason, allow.owner, allow.expires)
                        .as_bytes(),
                )
            });
            self.findings.push(Reported { finding, image, layer, fingerprint, allowed_by });
        }
    }

    /// Adds what an unnamed layer holds, as hidden, to the first image.
    pub(crate) fn add_hidden(&mut self, seen: &[Seen], why: &str) {
        let hidden = seen.iter().map(|seen| Subject {
            visibility: Visibility::Hidden,
            note: Some(why.to_owned()),
            ..seen.subject.clone()
        });
        let found: Vec<_> =
            hidden.flat_map(|subject| findings(&subject, &self.policy)).map(|f| (f, None)).collect();
        if self.images.is_empty() {
            self.images.push(Image::default());
        }
        self.add(0, found);
    }

    /// Adds a finding on a blob or the whole image.
    pub(crate) fn add_finding(&mut self, image: usize, finding: Finding, layer: Option<LayerName>) {
        self.add(image, vec![(finding, layer)]);
    }

    /// The policy that the report is made by.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Ends the report: order is by image, then weight, whatever order things were found in.
    pub(crate) fn close(&mut self, tally: Tally) {
        self.incomplete = tally.missing;
        self.incomplete.sort();
        self.incomplete.dedup();
        self.read = tally.read;
        self.findings.sort_by(|a, b| {
            let key = |r: &Reported| (r.image, std::cmp::Reverse(r.finding.severity), r.finding.rule);
            let by_place = |r: &Reported| (r.finding.path.clone(), r.finding.visibility, r.finding.class);
            key(a).cmp(&key(b)).then_with(|| by_place(a).cmp(&by_place(b)))
        });
    }
}

/// Leaves out what an ambiguous view only repeats of the merged one.
fn without_echoes(found: Vec<(Finding, Option<LayerName>)>) -> Vec<(Finding, Option<LayerName>)> {
    let same = |f: &Finding| (f.rule, f.class, f.path.clone());
    let merged = found.iter().filter(|(f, _)| f.visibility == Visibility::Merged);
    let merged: BTreeSet<_> = merged.map(|(f, _)| same(f)).collect();
    let echo = |f: &Finding| f.visibility == Visibility::Ambiguous && merged.contains(&same(f));
    found.into_iter().filter(|(f, _)| !echo(f)).collect()
}

fn order(finding: &Finding, layer: Option<&LayerName>) -> (String, Option<usize>) {
    (key(finding), layer.map(|l| l.index))
}

/// What makes two findings the same over rebuilds.
fn key(finding: &Finding) -> String {
    let class = finding.class.map_or("", policy::image::Class::name);
    format!("image-audit/1|{}|{class}|{}|{}", finding.rule.name(), finding.visibility.name(), finding.path)
}

fn fingerprint(key: &str, occurrence: u32) -> String {
    let mut hash = Sha256::new();
    hash.update(key.as_bytes());
    hash.update(occurrence.to_le_bytes());
    // 128 bits are enough to tell findings apart; the scheme in front is left out.
    finish(hash).to_string().chars().skip("sha256:".len()).take(32).collect()
}
