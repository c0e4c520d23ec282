//! Classes of forbidden programs, and the families that their names form.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

/// A class of programs that an image for agents has no use for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Shells, and the multicall programs that hold one.
    Shell,
    /// Interpreters.
    Interpreter,
    /// What fetches, sends or connects.
    NetworkClient,
    /// What listens.
    NetworkServer,
    /// What carries traffic past a wall.
    Tunnel,
    /// What looks for open doors.
    Scanner,
    /// Compilers, assemblers, linkers.
    Compiler,
    /// Debuggers and tracers.
    Debugger,
    /// What installs more.
    PackageManager,
    /// What changes user, root or namespace.
    PrivilegeTool,
    /// What drives a container engine or a cluster.
    ContainerTool,
    /// Miners.
    Miner,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 12] = [
        Self::Shell,
        Self::Interpreter,
        Self::NetworkClient,
        Self::NetworkServer,
        Self::Tunnel,
        Self::Scanner,
        Self::Compiler,
        Self::Debugger,
        Self::PackageManager,
        Self::PrivilegeTool,
        Self::ContainerTool,
        Self::Miner,
    ];

    /// Its name in reports and policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Interpreter => "interpreter",
            Self::NetworkClient => "network-client",
            Self::NetworkServer => "network-server",
            Self::Tunnel => "tunnel",
            Self::Scanner => "scanner",
            Self::Compiler => "compiler",
            Self::Debugger => "debugger",
            Self::PackageManager => "package-manager",
            Self::PrivilegeTool => "privilege-tool",
            Self::ContainerTool => "container-tool",
            Self::Miner => "miner",
        }
    }

    /// The class of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }

    /// The names that it forbids by default: the head of each family.
    pub fn default_names(self) -> impl Iterator<Item = &'static str> {
        DEFAULT_NAMES
            .iter()
            .filter(move |(class, _)| *class == self)
            .flat_map(|(_, names)| names.split_whitespace())
    }
}

/// Heads of families, as words in one text: a list of literals would be five times as long.
const DEFAULT_NAMES: [(Class, &str); 12] = [
    (
        Class::Shell,
        "sh ash bash dash zsh ksh mksh pdksh csh tcsh fish rbash rksh yash elvish nu xonsh pwsh \
         busybox toybox",
    ),
    (
        Class::Interpreter,
        "python pypy perl ruby irb node nodejs deno bun qjs php php-cgi php-fpm lua luajit tclsh wish \
         expect guile racket erl escript elixir iex rscript octave julia jshell groovy gawk ipython",
    ),
    (
        Class::NetworkClient,
        "nc netcat ncat socat curl wget wget2 aria2c axel lynx links elinks w3m http https httpie xh ftp \
         lftp ncftp tnftp tftp telnet ssh scp sftp slogin sshpass dbclient rsync rclone rsh rlogin rcp \
         openssl dig host nslookup whois ping fping traceroute tracepath mtr websocat grpcurl smbclient \
         mosquitto_pub mosquitto_sub swaks sendmail mutt mailx",
    ),
    (
        Class::NetworkServer,
        "sshd dropbear telnetd in.telnetd inetd xinetd httpd apache2 nginx caddy lighttpd thttpd \
         darkhttpd vsftpd proftpd ftpd tftpd in.tftpd dnsmasq named rpcbind smbd rsyncd squid tinyproxy \
         privoxy microsocks danted sockd",
    ),
    (
        Class::Tunnel,
        "chisel frpc frps ngrok cloudflared stunnel autossh proxychains proxytunnel corkscrew \
         connect-proxy torsocks tor redsocks tun2socks wg wg-quick wireguard openvpn tailscale tailscaled \
         zerotier-one iodine iodined dnscat ptunnel hans gost v2ray xray sing-box ss-local ss-server \
         sslocal ssserver bore rathole ligolo gsocket gs-netcat sshuttle",
    ),
    (
        Class::Scanner,
        "nmap nping zmap masscan rustscan naabu hping arping arp-scan netdiscover tcpdump tshark dumpcap \
         ngrep ettercap bettercap nikto sqlmap hydra medusa gobuster ffuf dirb wfuzz nuclei amass \
         subfinder dnsrecon fierce john hashcat msfconsole msfvenom responder linpeas pspy kube-hunter",
    ),
    (
        Class::Compiler,
        "gcc cc c++ g++ cpp cc1 cc1plus clang clang++ tcc c89 c99 as ld gold lld mold rustc cargo go \
         gccgo javac ghc ocamlc ocamlopt nim zig gfortran gnat nasm yasm make gmake cmake ninja swiftc \
         tsc dmd ldc2 crystal",
    ),
    (
        Class::Debugger,
        "gdb gdbserver lldb lldb-server strace ltrace perf bpftrace bpftool r2 radare2 rizin frida \
         frida-server frida-trace valgrind dlv uftrace",
    ),
    (
        Class::PackageManager,
        "apt apt-get aptitude dpkg dpkg-deb apk yum dnf microdnf rpm zypper pacman emerge xbps-install \
         opkg ipkg nix nix-env guix snap flatpak brew conda mamba micromamba pip pipx uv poetry \
         easy_install npm npx yarn pnpm corepack gem bundle bundler composer luarocks cpan cpanm",
    ),
    (
        Class::PrivilegeTool,
        "su sudo sudoedit doas pkexec runuser gosu su-exec setpriv capsh setcap chroot unshare nsenter \
         newgrp sg newuidmap newgidmap bwrap firejail fakeroot pivot_root insmod modprobe kmod kexec \
         debugfs",
    ),
    (
        Class::ContainerTool,
        "docker dockerd containerd containerd-shim ctr nerdctl runc crun youki podman buildah skopeo \
         umoci crictl kubectl kubelet kubeadm helm k3s k9s oc lxc lxc-attach lxc-start systemd-nspawn \
         machinectl docker-compose buildkitd buildctl nomad etcdctl",
    ),
    (
        Class::Miner,
        "xmrig xmr-stak minerd cpuminer ccminer cgminer bfgminer ethminer t-rex nbminer lolminer \
         phoenixminer gminer claymore srbminer srbminer-multi teamredminer xmrig-proxy cryptonight \
         kinsing kdevtmpfsi",
    ),
];

/// Which names are forbidden, by class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes(BTreeMap<String, BTreeSet<Class>>);

impl Default for Classes {
    fn default() -> Self {
        let mut classes = Self(BTreeMap::new());
        for class in Class::ALL {
            class.default_names().for_each(|name| classes.add(class, name));
        }
        classes
    }
}

impl Classes {
    /// Forbids `name`, whatever its case, as one of `class`.
    pub fn add(&mut self, class: Class, name: &str) {
        self.0.entry(name.to_ascii_lowercase()).or_default().insert(class);
    }

    /// Takes `name` out of `class`; `false` if it was not in it.
    pub fn remove(&mut self, class: Class, name: &str) -> bool {
        self.0.get_mut(&name.to_ascii_lowercase()).is_some_and(|classes| classes.remove(&class))
    }

    /// The names that are forbidden as `class`, in order.
    pub fn names(&self, class: Class) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(_, classes)| classes.contains(&class)).map(|(name, _)| name.as_str())
    }

    /// The classes of a file's base name, each with the forbidden name that it is one of.
    pub fn of(&self, base: &[u8]) -> BTreeMap<Class, String> {
        let mut found = BTreeMap::new();
        for name in family(base) {
            for class in self.0.get(&name).into_iter().flatten() {
                found.entry(*class).or_insert_with(|| name.clone());
            }
        }
        found
    }
}

/// Endings that distributions and people put on a program's name.
const ENDINGS: &str = ".traditional .openbsd .distrib .dpkg-dist .dpkg-new .dpkg-old .dpkg-tmp .real .orig .old .bak \
                       .static .exe .bin .elf -static -minimal -full -real -linux -amd64 -arm64 -x86_64 -aarch64 _amd64 \
                       _arm64 -musl -gnu -bin -dbg -debug .basic .tiny";

/// Names that a base name may stand for: itself in small letters, then without endings, version and target.
///
/// `NC.Traditional` → `nc`; `python3.11` → `python`; `x86_64-linux-gnu-gcc-12` → `gcc`; a Cyrillic `с` counts as the
/// Latin `c` that it looks like. Strongest first, no name twice.
pub fn family(base: &[u8]) -> Vec<String> {
    let mut names = vec![look_alikes(&String::from_utf8_lossy(base))];
    let mut next = 0;
    // Each name is shorter than the one it comes from, so this ends.
    while let Some(name) = names.get(next).cloned() {
        next += 1;
        let endings = ENDINGS.split_whitespace().filter_map(|ending| name.strip_suffix(ending));
        let shorter = endings.chain(without_version(&name)).chain(without_target(&name));
        for shorter in shorter.filter(|s| !s.is_empty()).map(str::to_owned).collect::<Vec<_>>() {
            if !names.contains(&shorter) {
                names.push(shorter);
            }
        }
    }
    names
}

/// The name without a trailing version: digits and dots, and the `-`, `_` or `.` before them.
fn without_version(name: &str) -> Option<&str> {
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let bare = digits.trim_end_matches(['-', '_']);
    let has_digit = name.strip_prefix(digits).is_some_and(|tail| tail.contains(|c: char| c.is_ascii_digit()));
    has_digit.then_some(bare)
}

/// The name without a compiler's target in front: `x86_64-linux-gnu-gcc`, `aarch64-alpine-linux-musl-ld`.
fn without_target(name: &str) -> Option<&str> {
    [
        "-linux-gnu-",
        "-linux-musl-",
        "-linux-gnueabihf-",
        "-linux-gnueabi-",
        "-linux-musleabihf-",
        "-none-elf-",
    ]
    .iter()
    .find_map(|target| name.split_once(target).map(|(_, program)| program))
}

/// Small letters, compatibility forms folded, invisible characters dropped, look-alikes of Latin letters replaced.
fn look_alikes(name: &str) -> String {
    let folded = name.nfkc().flat_map(char::to_lowercase);
    folded
        .filter(|c| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'))
        .map(latin)
        .collect()
}

/// The Latin letter that a Cyrillic or Greek small letter is drawn like.
const fn latin(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'ɡ' => 'g',
        'һ' => 'h',
        'і' | 'ι' | 'ı' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'п' | 'η' => 'n',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ѡ' | 'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        c => c,
    }
}
