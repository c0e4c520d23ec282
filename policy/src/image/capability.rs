//! File capabilities: the attribute `security.capability`, versions 1 to 3.

/// Names of the kernel's capabilities by number (`linux/capability.h` of 6.18).
const NAMES: [&str; 41] = [
    "cap_chown",
    "cap_dac_override",
    "cap_dac_read_search",
    "cap_fowner",
    "cap_fsetid",
    "cap_kill",
    "cap_setgid",
    "cap_setuid",
    "cap_setpcap",
    "cap_linux_immutable",
    "cap_net_bind_service",
    "cap_net_broadcast",
    "cap_net_admin",
    "cap_net_raw",
    "cap_ipc_lock",
    "cap_ipc_owner",
    "cap_sys_module",
    "cap_sys_rawio",
    "cap_sys_chroot",
    "cap_sys_ptrace",
    "cap_sys_pacct",
    "cap_sys_admin",
    "cap_sys_boot",
    "cap_sys_nice",
    "cap_sys_resource",
    "cap_sys_time",
    "cap_sys_tty_config",
    "cap_mknod",
    "cap_lease",
    "cap_audit_write",
    "cap_audit_control",
    "cap_setfcap",
    "cap_mac_override",
    "cap_mac_admin",
    "cap_syslog",
    "cap_wake_alarm",
    "cap_block_suspend",
    "cap_audit_read",
    "cap_perfmon",
    "cap_bpf",
    "cap_checkpoint_restore",
];

/// What `security.capability` grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCapability {
    /// The attribute's version, 1 to 3.
    pub version: u8,
    /// Whether the program starts with them raised.
    pub effective: bool,
    /// Permitted or inheritable, by name; a number that the kernel has no name for is `cap_N`.
    pub names: Vec<String>,
    /// The user namespace's root that they count under (version 3).
    pub root_id: Option<u32>,
}

/// An attribute that the kernel would refuse: wrong size or version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read security.capability: {0} bytes are none of its versions 1 to 3")]
pub struct MalformedCapability(usize);

impl FileCapability {
    /// Reads the attribute: little-endian words, magic first, then pairs of permitted and inheritable.
    ///
    /// # Errors
    /// [`MalformedCapability`] if length and version do not fit each other.
    pub fn parse(value: &[u8]) -> Result<Self, MalformedCapability> {
        let malformed = MalformedCapability(value.len());
        let (words, rest) = value.as_chunks::<4>();
        let words: Vec<u32> = words.iter().map(|w| u32::from_le_bytes(*w)).collect();
        let &magic = words.first().ok_or(malformed)?;
        let (version, low, high, root_id) = match (magic >> 24, words.as_slice()) {
            (1, [_, p, i]) => (1, p | i, 0, None),
            (2, [_, p0, i0, p1, i1]) => (2, p0 | i0, p1 | i1, None),
            (3, [_, p0, i0, p1, i1, root]) => (3, p0 | i0, p1 | i1, Some(*root)),
            _ => return Err(malformed),
        };
        if !rest.is_empty() {
            return Err(malformed);
        }
        let set = u64::from(high) << 32 | u64::from(low);
        let names = (0..64).filter(|n| set >> n & 1 == 1).map(name).collect();
        Ok(Self { version, effective: magic & 1 == 1, names, root_id })
    }
}

fn name(number: usize) -> String {
    NAMES.get(number).map_or_else(|| format!("cap_{number}"), |n| (*n).to_owned())
}
