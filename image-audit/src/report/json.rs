//! The report as JSON, schema `image-audit/1`.

use policy::image::{Allow, Rule};
use serde::Serialize;

use super::{Image, LayerName, Report, Reported};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    source: &'a str,
    verdict: &'static str,
    complete: bool,
    incomplete: Vec<Missing<'a>>,
    images: Vec<JsonImage<'a>>,
    findings: Vec<JsonFinding<'a>>,
    read: JsonRead,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    idle_allowances: Vec<JsonAllowance<'a>>,
}

#[derive(Serialize)]
struct JsonAllowance<'a> {
    rule: &'static str,
    path: String,
    owner: &'a str,
    why: &'static str,
}

#[derive(Serialize)]
struct Missing<'a> {
    #[serde(rename = "where")]
    place: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct JsonImage<'a> {
    platform: Option<&'a str>,
    manifest_digest: Option<String>,
    config_digest: Option<String>,
    layers: Vec<JsonLayer<'a>>,
}

#[derive(Serialize)]
struct JsonLayer<'a> {
    index: usize,
    diff_id: String,
    created_by: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    rule: &'static str,
    image: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
    severity: &'static str,
    path: String,
    names: Vec<String>,
    visibility: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<JsonLayer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<&'a [String]>,
    evidence: Vec<JsonEvidence<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cis: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_by: Option<&'a str>,
    remedy: &'a str,
    fingerprint: &'a str,
}

#[derive(Serialize)]
struct JsonEvidence<'a> {
    rung: &'static str,
    what: &'a str,
}

#[derive(Serialize)]
struct JsonRead {
    layers: u64,
    entries_seen: u64,
    bytes_seen: u64,
    entries_unanalysed: u64,
}

/// The document, indented, with a newline at its end.
pub(super) fn render(report: &Report) -> String {
    let document = Document {
        schema: "image-audit/1",
        source: &report.source,
        verdict: report.verdict().name(),
        complete: report.is_complete(),
        incomplete: report.incomplete.iter().map(|m| Missing { place: &m.where_, why: &m.why }).collect(),
        images: report.images.iter().map(image).collect(),
        findings: report.findings.iter().map(finding).collect(),
        read: JsonRead {
            layers: report.read.layers,
            entries_seen: report.read.entries_seen,
            bytes_seen: report.read.bytes_seen,
            entries_unanalysed: report.read.entries_unanalysed,
        },
        idle_allowances: report.idle_allowances().map(|(allow, why)| allowance(allow, why)).collect(),
    };
    // Text, numbers and lists alone: nothing in it can fail to be written.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn image(image: &Image) -> JsonImage<'_> {
    JsonImage {
        platform: image.platform.as_deref(),
        manifest_digest: image.manifest_digest.map(|d| d.to_string()),
        config_digest: image.config_digest.map(|d| d.to_string()),
        layers: image.layers.iter().map(layer).collect(),
    }
}

fn allowance<'a>(allow: &'a Allow, why: &'static str) -> JsonAllowance<'a> {
    JsonAllowance { rule: allow.rule.name(), path: allow.path.to_string(), owner: &allow.owner, why }
}

fn layer(layer: &LayerName) -> JsonLayer<'_> {
    JsonLayer {
        index: layer.index,
        diff_id: layer.diff_id.to_string(),
        created_by: layer.created_by.as_deref(),
    }
}

fn finding(reported: &Reported) -> JsonFinding<'_> {
    let finding = &reported.finding;
    JsonFinding {
        rule: finding.rule.name(),
        image: reported.image,
        class: finding.class.map(policy::image::Class::name),
        severity: finding.severity.name(),
        path: finding.path.to_string(),
        names: finding.names.iter().map(ToString::to_string).collect(),
        visibility: finding.visibility.name(),
        layer: reported.layer.as_ref().map(layer),
        mode: finding.mode.map(|mode| format!("{mode:04o}")),
        capabilities: (finding.rule == Rule::FileCapability).then_some(finding.capabilities.as_slice()),
        evidence: finding
            .evidence
            .iter()
            .map(|e| JsonEvidence { rung: e.rung.name(), what: &e.what })
            .collect(),
        cis: finding.rule.cis(),
        allowed_by: reported.allowed_by.as_deref(),
        remedy: &finding.remedy,
        fingerprint: &reported.fingerprint,
    }
}
