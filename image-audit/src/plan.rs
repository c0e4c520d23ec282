//! What an archive says its images are made of: `manifest.json` of Docker, `index.json` of OCI.

use policy::image::{Digest, ImagePath};

use crate::archive::Blobs;
use crate::blob::Body;
use crate::json::Json;
use crate::tally::Tally;

/// Indexes within indexes: one is usual, two are seen.
const INDEX_DEPTH_MAX: usize = 8;

/// One image as a manifest describes it.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// `linux/amd64`, where an index says it.
    pub platform: Option<String>,
    /// The manifest's own digest, where it is a blob.
    pub manifest_digest: Option<Digest>,
    /// Its configuration.
    pub config: Part,
    /// Its layers, lowest first.
    pub layers: Vec<Part>,
}

/// A blob that a manifest names.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Its name in the archive.
    pub path: ImagePath,
    /// The digest that it must have, where it is named by one.
    pub digest: Option<Digest>,
    /// The size that it must have.
    pub size_bytes: Option<u64>,
    /// What it is said to be.
    pub media_type: Option<String>,
}

/// The images of `manifest.json`; `None` if there is none.
pub(crate) fn docker(blobs: &Blobs, tally: &mut Tally) -> Option<Vec<Plan>> {
    let path = ImagePath::clean(b"manifest.json");
    blobs.find(&path)?;
    let Some(json) = document(blobs, &path, tally) else { return Some(Vec::new()) };
    let plan = |item: &Json| {
        Some(Plan {
            platform: None,
            manifest_digest: None,
            config: docker_part(item.field("Config")?.text()?),
            layers: match item.field("Layers") {
                None => Vec::new(),
                Some(layers) => {
                    layers.list()?.iter().map(|l| l.text().map(docker_part)).collect::<Option<_>>()?
                }
            },
        })
    };
    let plans: Option<Vec<_>> = json.list().and_then(|items| items.iter().map(plan).collect());
    if plans.as_ref().is_none_or(Vec::is_empty) {
        tally.incomplete("manifest.json", "it lists no image, or not as a list of Config and Layers");
    }
    Some(plans.unwrap_or_default())
}

/// A name in `manifest.json`: `HEX.json`, `blobs/sha256/HEX`, or a legacy `ID/layer.tar` that promises nothing.
fn docker_part(name: &str) -> Part {
    let base = name.rsplit('/').next().unwrap_or_default();
    let hex = base.strip_suffix(".json").unwrap_or(base);
    let digest = Digest::parse(&format!("sha256:{hex}"));
    Part { path: ImagePath::clean(name.as_bytes()), digest, size_bytes: None, media_type: None }
}

/// The images of `index.json`, nested indexes followed; `None` if there is no index.
pub(crate) fn oci(blobs: &Blobs, tally: &mut Tally) -> Option<Vec<Plan>> {
    let path = ImagePath::clean(b"index.json");
    blobs.find(&path)?;
    let mut plans = Vec::new();
    let Some(json) = document(blobs, &path, tally) else { return Some(plans) };
    let mut add = |plan: Plan| {
        // An image with two tags stands in the index twice.
        if !plans.iter().any(|known: &Plan| known.manifest_digest == plan.manifest_digest) {
            plans.push(plan);
        }
    };
    index(blobs, &json, INDEX_DEPTH_MAX, &mut add, tally);
    Some(plans)
}

fn index(blobs: &Blobs, json: &Json, depth: usize, found: &mut dyn FnMut(Plan), tally: &mut Tally) {
    let Some(manifests) = json.field("manifests").and_then(Json::list) else {
        return tally.incomplete("index.json", "an index without a list of manifests");
    };
    for descriptor in manifests {
        let Some(part) = oci_part(descriptor) else {
            tally.incomplete("index.json", "a manifest without a sha256 digest");
            continue;
        };
        let platform = descriptor.field("platform").and_then(platform);
        if is_attestation(descriptor, platform.as_deref()) {
            // Nothing runs from it. If a blob of its is a tar all the same, that is found as unreferenced.
            continue;
        }
        check(blobs, &part, tally);
        let Some(json) = document(blobs, &part.path, tally) else {
            tally.incomplete(&part.path.to_string(), "a manifest that the archive does not hold");
            continue;
        };
        if json.field("manifests").is_some() && depth > 0 {
            index(blobs, &json, depth - 1, found, tally);
        } else if let Some(plan) = manifest(&json, platform, part.digest) {
            found(plan);
        } else {
            tally.incomplete(&part.path.to_string(), "a manifest that does not list a config and layers");
        }
    }
}

fn manifest(json: &Json, platform: Option<String>, digest: Option<Digest>) -> Option<Plan> {
    let config = oci_part(json.field("config")?)?;
    let layers = json.field("layers")?.list()?.iter().map(oci_part).collect::<Option<_>>()?;
    Some(Plan { platform, manifest_digest: digest, config, layers })
}

fn oci_part(descriptor: &Json) -> Option<Part> {
    let digest = Digest::parse(descriptor.field("digest")?.text()?)?;
    let hex: String = digest.to_string().chars().skip("sha256:".len()).collect();
    Some(Part {
        path: ImagePath::clean(format!("blobs/sha256/{hex}").as_bytes()),
        digest: Some(digest),
        size_bytes: Some(descriptor.field("size")?.whole()?),
        media_type: descriptor.field("mediaType").and_then(Json::text).map(str::to_owned),
    })
}

/// `os/architecture`, and the variant if there is one.
pub(crate) fn platform(json: &Json) -> Option<String> {
    let field = |name| json.field(name).and_then(Json::text).filter(|text| !text.is_empty());
    let parts = [Some(field("os")?), Some(field("architecture")?), field("variant")];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("/"))
}

fn is_attestation(descriptor: &Json, platform: Option<&str>) -> bool {
    let kind =
        descriptor.field("annotations").and_then(|a| a.key("vnd.docker.reference.type")).and_then(Json::text);
    kind == Some("attestation-manifest") && platform == Some("unknown/unknown")
}

/// Reads a JSON blob; `None`, and a word of why, where it is none. A blob that is not there is no word's worth.
pub(crate) fn document(blobs: &Blobs, path: &ImagePath, tally: &mut Tally) -> Option<Json> {
    let (_, blob) = blobs.find(path)?;
    let parsed = match &blob.body {
        Body::Json(bytes) => Json::parse(bytes).map_err(|error| format!("it is no JSON: {error}")),
        Body::Unread(why) => Err(why.clone()),
        Body::Layer(..) | Body::Other => Err("it is no JSON".to_owned()),
    };
    match parsed {
        Ok(json) => Some(json),
        Err(why) => {
            tally.incomplete(&path.to_string(), &why);
            None
        }
    }
}

/// Whether a blob is there and is what its descriptor promises; what is not is named. `false` if it is not.
pub(crate) fn check(blobs: &Blobs, part: &Part, tally: &mut Tally) -> bool {
    let Some((_, blob)) = blobs.find(&part.path) else {
        tally.incomplete(&part.path.to_string(), "the archive does not hold it");
        return false;
    };
    let mut promised = true;
    if let Some(digest) = part.digest.filter(|digest| *digest != blob.digest) {
        tally.incomplete(&part.path.to_string(), &format!("its digest is {}, not {digest}", blob.digest));
        promised = false;
    }
    if let Some(size) = part.size_bytes.filter(|size| *size != blob.size_bytes) {
        tally.incomplete(
            &part.path.to_string(),
            &format!("its size is {} bytes, not {size}", blob.size_bytes),
        );
        promised = false;
    }
    promised
}
