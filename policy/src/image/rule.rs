//! The rules by name, how much each weighs, and in which view of an image a thing is seen.

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Weak, or weakly known.
    Low,
    /// Wants a decision.
    Medium,
    /// Fails a build by default.
    High,
}

impl Severity {
    /// Every severity, lightest first.
    pub const ALL: [Self; 4] = [Self::Info, Self::Low, Self::Medium, Self::High];

    /// Its name in reports and policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The severity of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// In which view of an image a thing is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Visibility {
    /// A container made by Docker on overlay2 shows it.
    Merged,
    /// Another engine, driver or unpacker shows it.
    Ambiguous,
    /// It is only in a layer's blob, under a whiteout or an overwrite: whoever pulls the image has it.
    Hidden,
}

impl Visibility {
    /// Every view.
    pub const ALL: [Self; 3] = [Self::Merged, Self::Ambiguous, Self::Hidden];

    /// Its name in reports and policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::Ambiguous => "ambiguous",
            Self::Hidden => "hidden",
        }
    }
}

/// A rule: one kind of thing that can be held against an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A file that runs as its owner.
    Setuid,
    /// A file that runs as its group.
    Setgid,
    /// A file that runs with capabilities.
    FileCapability,
    /// An extended attribute by which overlayfs changes what a container sees.
    OverlayXattr,
    /// A blob whose bytes are not those that its name promises.
    DigestMismatch,
    /// Two descriptions of the image in one archive that say different things.
    ManifestMismatch,
    /// A program of a forbidden class.
    ForbiddenBinary,
    /// The container's user is root.
    ConfigRootUser,
    /// A secret in the configuration.
    ConfigSecret,
    /// A device node.
    DeviceNode,
    /// A directory that programs or libraries are looked up in, and that anyone may write to.
    WritablePathDir,
    /// Bytes that two readers of the format understand differently.
    FormatAnomaly,
    /// A command that downloads and runs.
    ConfigRemoteScript,
    /// A packed or encrypted program.
    OpaqueContent,
    /// Anyone may write to it.
    WorldWritable,
    /// A setuid or setgid bit on a directory: files in it take its owner or group.
    SetidDirectory,
    /// A blob that is not compressed as its media type says.
    MediaTypeMismatch,
    /// A table of contents that differs from the archive it describes.
    TocMismatch,
    /// Bytes after the end.
    TrailingData,
    /// `ADD` where `COPY` would do.
    ConfigAdd,
    /// An exposed port.
    ConfigPort,
    /// A volume.
    ConfigVolume,
    /// No health check.
    ConfigNoHealthcheck,
    /// A user that the image's own passwd does not know.
    UnknownUser,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 24] = [
        Self::Setuid,
        Self::Setgid,
        Self::FileCapability,
        Self::OverlayXattr,
        Self::DigestMismatch,
        Self::ManifestMismatch,
        Self::ForbiddenBinary,
        Self::ConfigRootUser,
        Self::ConfigSecret,
        Self::DeviceNode,
        Self::WritablePathDir,
        Self::FormatAnomaly,
        Self::ConfigRemoteScript,
        Self::OpaqueContent,
        Self::WorldWritable,
        Self::SetidDirectory,
        Self::MediaTypeMismatch,
        Self::TocMismatch,
        Self::TrailingData,
        Self::ConfigAdd,
        Self::ConfigPort,
        Self::ConfigVolume,
        Self::ConfigNoHealthcheck,
        Self::UnknownUser,
    ];

    /// Its name in reports and policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setuid => "setuid",
            Self::Setgid => "setgid",
            Self::FileCapability => "file-capability",
            Self::OverlayXattr => "overlay-xattr",
            Self::DigestMismatch => "digest-mismatch",
            Self::ManifestMismatch => "manifest-mismatch",
            Self::ForbiddenBinary => "forbidden-binary",
            Self::ConfigRootUser => "config-root-user",
            Self::ConfigSecret => "config-secret",
            Self::DeviceNode => "device-node",
            Self::WritablePathDir => "writable-path-dir",
            Self::FormatAnomaly => "format-anomaly",
            Self::ConfigRemoteScript => "config-remote-script",
            Self::OpaqueContent => "opaque-content",
            Self::WorldWritable => "world-writable",
            Self::SetidDirectory => "setid-directory",
            Self::MediaTypeMismatch => "media-type-mismatch",
            Self::TocMismatch => "toc-mismatch",
            Self::TrailingData => "trailing-data",
            Self::ConfigAdd => "config-add",
            Self::ConfigPort => "config-port",
            Self::ConfigVolume => "config-volume",
            Self::ConfigNoHealthcheck => "config-no-healthcheck",
            Self::UnknownUser => "unknown-user",
        }
    }

    /// The rule of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }

    /// What it weighs unless the policy or the evidence says otherwise.
    pub const fn severity(self) -> Severity {
        match self {
            Self::Setuid
            | Self::Setgid
            | Self::FileCapability
            | Self::OverlayXattr
            | Self::DigestMismatch
            | Self::ManifestMismatch
            | Self::ForbiddenBinary => Severity::High,
            Self::ConfigRootUser
            | Self::ConfigSecret
            | Self::DeviceNode
            | Self::WritablePathDir
            | Self::FormatAnomaly
            | Self::ConfigRemoteScript
            | Self::OpaqueContent => Severity::Medium,
            Self::WorldWritable
            | Self::SetidDirectory
            | Self::MediaTypeMismatch
            | Self::TocMismatch
            | Self::TrailingData
            | Self::ConfigAdd => Severity::Low,
            Self::ConfigPort | Self::ConfigVolume | Self::ConfigNoHealthcheck | Self::UnknownUser => {
                Severity::Info
            }
        }
    }

    /// The recommendation of the CIS Docker Benchmark that it checks, if there is one.
    pub const fn cis(self) -> Option<&'static str> {
        match self {
            Self::ConfigRootUser => Some("4.1"),
            Self::ConfigNoHealthcheck => Some("4.6"),
            Self::Setuid | Self::Setgid => Some("4.8"),
            Self::ConfigAdd => Some("4.9"),
            Self::ConfigSecret => Some("4.10"),
            Self::FileCapability
            | Self::OverlayXattr
            | Self::DigestMismatch
            | Self::ManifestMismatch
            | Self::ForbiddenBinary
            | Self::DeviceNode
            | Self::WritablePathDir
            | Self::FormatAnomaly
            | Self::ConfigRemoteScript
            | Self::OpaqueContent
            | Self::WorldWritable
            | Self::SetidDirectory
            | Self::MediaTypeMismatch
            | Self::TocMismatch
            | Self::TrailingData
            | Self::ConfigPort
            | Self::ConfigVolume
            | Self::UnknownUser => None,
        }
    }
}
