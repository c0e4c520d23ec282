//! The demo's own certificate authority: made in memory at each run, its key never written anywhere.

use std::io;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// Why a certificate could not be made or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// The names or the key did not make a certificate.
    #[error("make a certificate")]
    Make(#[source] rcgen::Error),
    /// A file did not take it.
    #[error("write a certificate")]
    Write(#[source] io::Error),
}

/// Issues certificates for the demo's provider and sites.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
}

impl Authority {
    /// A new one with a new key.
    ///
    /// # Errors
    /// [`PkiError::Make`].
    pub fn make() -> Result<Self, PkiError> {
        let key = KeyPair::generate().map_err(PkiError::Make)?;
        let mut params = CertificateParams::new(Vec::new()).map_err(PkiError::Make)?;
        params.distinguished_name.push(DnType::CommonName, "darwin demo, this run only");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate_pem = params.self_signed(&key).map_err(PkiError::Make)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate_pem })
    }

    /// Its own certificate, as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Writes `STEM.pem` and `STEM.key` for a server that answers to `names`.
    ///
    /// # Errors
    /// [`PkiError`].
    pub fn issue(&self, folder: &Path, stem: &str, names: &[&str]) -> Result<(), PkiError> {
        let key = KeyPair::generate().map_err(PkiError::Make)?;
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let params = CertificateParams::new(names).map_err(PkiError::Make)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(PkiError::Make)?;
        let write = |ending: &str, text: String| {
            std::fs::write(folder.join(format!("{stem}.{ending}")), text).map_err(PkiError::Write)
        };
        write("pem", certificate.pem())?;
        write("key", key.serialize_pem())
    }
}
