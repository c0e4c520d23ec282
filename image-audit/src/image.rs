//! Makes images of an archive's blobs by its manifests, checks every digest, and puts them into the report.

use std::collections::BTreeSet;

use policy::image::{Digest, Finding, ImagePath, Rule};

use crate::archive::Blobs;
use crate::blob::Body;
use crate::entry::Entry;
use crate::json::Json;
use crate::layer::LayerRead;
use crate::merge::{Seen, views};
use crate::plan::{self, Part, Plan, check, document};
use crate::report::{Image, LayerName, Report};
use crate::tally::Tally;
use crate::unpack::Compression;

/// What came of an archive's manifests.
pub(crate) enum Assembled {
    /// The images are in the report.
    Images,
    /// There is no manifest at all.
    NoManifest,
    /// No image is for the platform that was asked for; those that there are.
    NoPlatform(Vec<String>),
}

/// Adds every image that the manifests name, or those for `platform`, then what no manifest names.
pub(crate) fn assemble(
    blobs: &Blobs,
    platform: Option<&str>,
    report: &mut Report,
    tally: &mut Tally,
) -> Assembled {
    let (docker, oci) = (plan::docker(blobs, tally), plan::oci(blobs, tally));
    if docker.is_none() && oci.is_none() {
        return Assembled::NoManifest;
    }
    let (mut docker, mut oci) = (docker.unwrap_or_default(), oci.unwrap_or_default());
    let mut used = BTreeSet::new();
    if let Some(platform) = platform {
        let mut others = Vec::new();
        for plans in [&mut docker, &mut oci] {
            let (kept, left): (Vec<_>, Vec<_>) =
                plans.drain(..).partition(|plan| is_for(blobs, plan, platform));
            *plans = kept;
            others.extend(left);
        }
        if docker.is_empty() && oci.is_empty() {
            let present: BTreeSet<_> = others.iter().filter_map(|plan| platform_of(blobs, plan)).collect();
            return Assembled::NoPlatform(present.into_iter().collect());
        }
        // Their layers have a manifest: they are not asked for, which is not the same as hidden.
        let layers = others.iter().flat_map(|plan| &plan.layers);
        used.extend(layers.filter_map(|part| blobs.find(&part.path)).map(|(path, _)| path.clone()));
    }
    let both = !docker.is_empty() && !oci.is_empty();
    for mut plan in docker {
        // One image, told twice: it is audited once, as both must say the same.
        let same = |other: &Plan| other.config.digest.is_some() && other.config.digest == plan.config.digest;
        let twin = oci.iter().position(same).map(|at| oci.remove(at));
        let differ = twin.as_ref().map_or(both, |twin| !same_layers(&plan, twin));
        if let Some(twin) = twin {
            plan.manifest_digest = twin.manifest_digest;
            plan.platform = twin.platform;
        }
        let number = add(blobs, &plan, &mut used, (report, tally));
        if differ {
            let what =
                "manifest.json and index.json do not describe the same image: engines differ on which counts";
            image_finding(report, number, Rule::ManifestMismatch, what.into(), None);
        }
    }
    for plan in oci {
        add(blobs, &plan, &mut used, (report, tally));
    }
    unreferenced(blobs, &used, report, tally);
    Assembled::Images
}

/// The platform of an index, or of the configuration.
fn platform_of(blobs: &Blobs, plan: &Plan) -> Option<String> {
    let config =
        || document(blobs, &plan.config.path, &mut Tally::default()).and_then(|json| plan::platform(&json));
    plan.platform.clone().or_else(config)
}

/// Whether an image is for `wanted`, which may leave the variant out.
fn is_for(blobs: &Blobs, plan: &Plan, wanted: &str) -> bool {
    let rest =
        |platform: &str| platform.strip_prefix(wanted).is_some_and(|r| r.is_empty() || r.starts_with('/'));
    wanted.contains('/') && platform_of(blobs, plan).is_some_and(|platform| rest(&platform))
}

fn same_layers(one: &Plan, other: &Plan) -> bool {
    one.layers.iter().map(|part| &part.path).eq(other.layers.iter().map(|part| &part.path))
}

/// What a configuration says of the layers.
#[derive(Default)]
struct Config {
    digest: Option<Digest>,
    platform: Option<String>,
    diff_ids: Vec<Option<Digest>>,
    /// The line of every layer that is not empty.
    created_by: Vec<Option<String>>,
}

/// The layers of one image as far as they are laid out.
#[derive(Default)]
struct Laid<'a> {
    names: Vec<LayerName>,
    contents: Vec<&'a [Entry]>,
    /// What is held against a layer's blob: its place in `names`, the rule, why.
    held: Vec<(usize, Rule, String)>,
}

/// Adds one image and says its number.
fn add(
    blobs: &Blobs,
    plan: &Plan,
    used: &mut BTreeSet<ImagePath>,
    (report, tally): (&mut Report, &mut Tally),
) -> usize {
    let config = config(blobs, &plan.config, tally);
    if plan.layers.len() != config.diff_ids.len() {
        let what = format!("{} layers and {} diff_ids", plan.layers.len(), config.diff_ids.len());
        tally.incomplete(&plan.config.path.to_string(), &what);
    }
    let mut laid = Laid::default();
    for (index, part) in plan.layers.iter().enumerate() {
        if !check(blobs, part, tally) && blobs.find(&part.path).is_some() {
            let what = format!("{} is not what its name or descriptor promises", part.path);
            laid.held.push((laid.names.len(), Rule::DigestMismatch, what));
        }
        if let Some((read, compression)) = layer(blobs, part, used, tally) {
            let mismatch = media_type(part, compression);
            laid.held.extend(mismatch.map(|what| (laid.names.len(), Rule::MediaTypeMismatch, what)));
            laid.lay(index, part, (read, &config), tally);
        }
    }
    let number = report.images.len();
    let image = Image {
        platform: plan.platform.clone().or(config.platform),
        manifest_digest: plan.manifest_digest,
        config_digest: config.digest,
        layers: laid.names.clone(),
    };
    report.add_image(image, &views(laid.contents));
    for (at, rule, what) in laid.held {
        image_finding(report, number, rule, what, laid.names.get(at).cloned());
    }
    number
}

impl<'a> Laid<'a> {
    fn lay(
        &mut self,
        index: usize,
        part: &Part,
        (read, config): (&'a LayerRead, &Config),
        tally: &mut Tally,
    ) {
        let place = self.names.len();
        // A diff_id that the configuration lacks is named there, not here.
        if let Some(stated) = config.diff_ids.get(index).filter(|stated| **stated != Some(read.diff_id)) {
            let stated = stated.map_or_else(|| "none that is a sha256".into(), |digest| digest.to_string());
            let what = format!("its diff_id is {}, and the configuration says {stated}", read.diff_id);
            tally.incomplete(&part.path.to_string(), &what);
            self.held.push((place, Rule::DigestMismatch, what));
        }
        if read.trailing {
            let what = format!("{} goes on after the end of its tar", part.path);
            self.held.push((place, Rule::TrailingData, what));
        }
        // History and layers fit one to one, or no line is said to have made any: never a guess.
        let fits = config.created_by.len() == config.diff_ids.len();
        let created_by = config.created_by.get(index).filter(|_| fits).cloned().flatten();
        self.names.push(LayerName { index, diff_id: read.diff_id, created_by });
        self.contents.push(&read.entries);
    }
}

fn layer<'a>(
    blobs: &'a Blobs,
    part: &Part,
    used: &mut BTreeSet<ImagePath>,
    tally: &mut Tally,
) -> Option<(&'a LayerRead, Compression)> {
    let (path, blob) = blobs.find(&part.path)?;
    used.insert(path.clone());
    match &blob.body {
        Body::Layer(read, compression) => {
            if let Some(problem) = &read.problem {
                tally.incomplete(&part.path.to_string(), problem);
            }
            Some((read, *compression))
        }
        Body::Unread(why) => {
            tally.incomplete(&part.path.to_string(), why);
            None
        }
        Body::Json(_) | Body::Other => {
            tally.incomplete(&part.path.to_string(), "a layer that is no tar");
            None
        }
    }
}

fn config(blobs: &Blobs, part: &Part, tally: &mut Tally) -> Config {
    check(blobs, part, tally);
    let Some(json) = document(blobs, &part.path, tally) else { return Config::default() };
    let diff_ids =
        json.field("rootfs").and_then(|r| r.field("diff_ids")).and_then(Json::list).unwrap_or_default();
    let history = json.field("history").and_then(Json::list).unwrap_or_default();
    let empty = |line: &&Json| line.field("empty_layer") == Some(&Json::Bool(true));
    let text = |line: &Json| line.field("created_by").and_then(Json::text).map(str::to_owned);
    Config {
        digest: blobs.find(&part.path).map(|(_, blob)| blob.digest),
        platform: plan::platform(&json),
        diff_ids: diff_ids.iter().map(|id| id.text().and_then(Digest::parse)).collect(),
        created_by: history.iter().filter(|line| !empty(line)).map(text).collect(),
    }
}

/// What is wrong about a layer's media type, if it has one that says how it is packed.
fn media_type(part: &Part, compression: Compression) -> Option<String> {
    let media_type = part.media_type.as_deref()?;
    // OCI writes `.tar+gzip`, Docker `.tar.gzip`; media types are case-insensitive (RFC 6838).
    let stated = match media_type.to_ascii_lowercase().rsplit(['.', '+']).next()? {
        "gzip" => Compression::Gzip,
        "zstd" => Compression::Zstd,
        "tar" => Compression::Plain,
        _ => return None,
    };
    let shown = policy::image::escape(media_type.as_bytes());
    (stated != compression).then(|| format!("{} is said to be {shown}, and is {compression:?}", part.path))
}

/// Layers that no manifest names: nothing runs from them, and whoever has the archive has them.
fn unreferenced(blobs: &Blobs, used: &BTreeSet<ImagePath>, report: &mut Report, tally: &mut Tally) {
    for (path, blob) in blobs.iter().filter(|(path, _)| !used.contains(*path)) {
        match &blob.body {
            Body::Layer(read, _) => {
                if let Some(problem) = &read.problem {
                    tally.incomplete(&path.to_string(), problem);
                }
                let seen: Vec<Seen> = views([read.entries.as_slice()]);
                report.add_hidden(&seen, &format!("it is in {path}, which no manifest names"));
            }
            Body::Unread(why) => tally.incomplete(&path.to_string(), why),
            Body::Json(_) | Body::Other => {}
        }
    }
}

/// Holds something against an image or a layer's blob.
pub(crate) fn image_finding(
    report: &mut Report,
    image: usize,
    rule: Rule,
    what: String,
    layer: Option<LayerName>,
) {
    let remedy = "build and save the image again, and find out who changed the archive";
    let finding = Finding::of_image(rule, what, remedy, report.policy());
    report.add_finding(image, finding, layer);
}
