//! `netd.toml`: read whole, every mistake with its place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::path::PathBuf;

use policy::Mistake;
use policy::confinement::{Prefix, Surroundings};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::protocol::Role;

/// Where `netd.toml` is looked for when no other is named.
pub const DEFAULT_PATH: &str = "/etc/darwin/netd.toml";
/// The decoy's addresses: of the blocks kept for documentation, so that they are nobody's.
const DECOY_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DECOY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// NFLOG group in every namespace; each namespace has groups of its own.
const LOG_GROUP: u16 = 1;

/// What the kernel shows for a user that has no number in our user namespace: anybody at all.
const OVERFLOW_UID: u32 = 65534;

/// A user, as far as netd needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// Its first group.
    pub gid: u32,
}

/// Who may do what, by number of the user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clients {
    /// Confine, release, list, verify, render.
    pub control: Vec<u32>,
    /// Be given the proxy's listeners.
    pub proxy: Vec<u32>,
    /// Be given the gateway's listeners.
    pub gateway: Vec<u32>,
}

impl Clients {
    /// Whether a user may do anything at all.
    pub fn name(&self, uid: u32) -> bool {
        [&self.control, &self.proxy, &self.gateway].iter().any(|users| users.contains(&uid))
    }

    /// The users that may have a role's listeners.
    pub fn of(&self, role: Role) -> &[u32] {
        match role {
            Role::Proxy => &self.proxy,
            Role::Gateway => &self.gateway,
        }
    }
}

/// All that `netd.toml` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The API's socket.
    pub socket: PathBuf,
    /// Where signals go, a line each.
    pub spool: PathBuf,
    /// Size from which on nothing is added to the spool until somebody makes it smaller, in bytes.
    pub spool_bytes_max: u64,
    /// The head's own user; none: the one that started netd.
    pub user: Option<User>,
    /// Port of the proxy's listener.
    pub proxy_port: u16,
    /// Port of the gateway's listener.
    pub gateway_port: u16,
    /// Who may do what. Left out: root may control, nobody else may do anything.
    pub clients: Clients,
    /// What `lan_probe` means.
    pub lan: Vec<Prefix>,
    /// What `metadata_probe` means.
    pub metadata: Vec<IpAddr>,
}

impl Default for Config {
    fn default() -> Self {
        let lan = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];
        let metadata = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200"];
        Self {
            socket: PathBuf::from("/run/darwin/netd.sock"),
            spool: PathBuf::from("/var/lib/darwin/signals/netd.jsonl"),
            spool_bytes_max: 256 << 20,
            user: None,
            proxy_port: 3128,
            gateway_port: 3129,
            clients: Clients { control: vec![0], ..Clients::default() },
            lan: lan.iter().filter_map(|text| Prefix::parse(text).ok()).collect(),
            metadata: metadata.iter().filter_map(|text| text.parse().ok()).collect(),
        }
    }
}

impl Config {
    /// Reads `netd.toml`. `user_of` finds a user by name or number.
    ///
    /// # Errors
    /// Every mistake of the text, in its order.
    pub fn read(text: &str, user_of: &dyn Fn(&str) -> Option<User>) -> Result<Self, Vec<Mistake>> {
        let mut reader = Reader { text, user_of, mistakes: Vec::new() };
        let (table, syntax) = DeTable::parse_recoverable(text);
        for error in &syntax {
            reader.note(&error.span().unwrap_or(0..0), error.message());
        }
        let mut config = Self::default();
        // What follows a syntax error is a guess: only the syntax is reported then.
        if syntax.is_empty() {
            for (key, value) in table.get_ref() {
                reader.entry(&mut config, key, value);
            }
            reader.whole(&config, table.get_ref());
        }
        reader.mistakes.sort();
        if reader.mistakes.is_empty() { Ok(config) } else { Err(reader.mistakes) }
    }

    /// What the rules need to know.
    pub fn surroundings(&self) -> Surroundings {
        Surroundings {
            decoy_v4: DECOY_V4,
            decoy_v6: DECOY_V6,
            metadata: self.metadata.clone(),
            lan: self.lan.clone(),
            log_group: LOG_GROUP,
        }
    }
}

type Value<'t> = Spanned<DeValue<'t>>;

struct Reader<'t> {
    text: &'t str,
    user_of: &'t dyn Fn(&str) -> Option<User>,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn note(&mut self, span: &Range<usize>, what: impl Into<String>) {
        self.mistakes.push(Mistake::at(self.text, span.start, what));
    }

    fn entry(&mut self, config: &mut Config, key: &Spanned<std::borrow::Cow<'_, str>>, value: &Value<'_>) {
        match key.get_ref().as_ref() {
            "socket" => self.put(value, Self::path, &mut config.socket),
            "spool" => self.put(value, Self::path, &mut config.spool),
            "spool_bytes_max" => {
                self.put(value, |reader, value| reader.number(value, 1, 1 << 40), &mut config.spool_bytes_max);
            }
            "user" => config.user = self.user(value),
            "proxy_port" => self.put(value, Self::port, &mut config.proxy_port),
            "gateway_port" => self.put(value, Self::port, &mut config.gateway_port),
            "clients" => self.clients(value, &mut config.clients),
            "lan" => self.put(value, |reader, value| reader.each(value, Self::prefix), &mut config.lan),
            "metadata" => {
                self.put(value, |reader, value| reader.each(value, Self::address), &mut config.metadata);
            }
            other => self.note(
                &key.span(),
                format!(
                    "there is no key `{other}`; there are socket, spool, spool_bytes_max, user, proxy_port, gateway_port, clients, lan and metadata"
                ),
            ),
        }
    }

    /// What only shows when all is read.
    fn whole(&mut self, config: &Config, table: &DeTable<'_>) {
        if config.proxy_port == config.gateway_port {
            let at = table.get("gateway_port").or_else(|| table.get("proxy_port"));
            let span = at.map_or(0..0, Spanned::span);
            self.note(&span, "proxy_port and gateway_port are the same port");
        }
    }

    fn put<T>(
        &mut self,
        value: &Value<'_>,
        read: impl FnOnce(&mut Self, &Value<'_>) -> Option<T>,
        into: &mut T,
    ) {
        if let Some(read) = read(self, value) {
            *into = read;
        }
    }

    fn string<'v>(&mut self, value: &'v Value<'_>, what: &str) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.note(&value.span(), format!("this is not {what}"));
        }
        text
    }

    fn path(&mut self, value: &Value<'_>) -> Option<PathBuf> {
        let text = self.string(value, "a path in quotes")?;
        if text.starts_with('/') {
            return Some(PathBuf::from(text));
        }
        self.note(&value.span(), format!("`{text}` is not an absolute path"));
        None
    }

    fn number(&mut self, value: &Value<'_>, least: u64, most: u64) -> Option<u64> {
        let digits = value.get_ref().as_integer();
        let number = digits.and_then(|digits| u64::from_str_radix(digits.as_str(), digits.radix()).ok());
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.note(&value.span(), format!("this is not a whole number from {least} to {most}"));
        }
        number
    }

    /// Over 1023: the hand has no right to the ports below.
    fn port(&mut self, value: &Value<'_>) -> Option<u16> {
        self.number(value, 1024, 65535).and_then(|port| u16::try_from(port).ok())
    }

    fn user(&mut self, value: &Value<'_>) -> Option<User> {
        let named = match value.get_ref().as_integer() {
            Some(digits) => digits.as_str().to_owned(),
            None => self.string(value, "a user's name or number")?.to_owned(),
        };
        let user = (self.user_of)(&named);
        if user.is_some_and(|user| user.uid == OVERFLOW_UID) {
            self.note(
                &value.span(),
                "user 65534 is how every user outside this user namespace looks: name another",
            );
            return None;
        }
        if user.is_none() {
            self.note(
                &value.span(),
                format!("there is no user `{named}` on this host; make it or write a number"),
            );
        }
        user
    }

    fn each<T>(
        &mut self,
        value: &Value<'_>,
        read: impl Fn(&mut Self, &Value<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(list) = value.get_ref().as_array() else {
            self.note(&value.span(), "this is not a list in brackets");
            return None;
        };
        // All are read, so that all mistakes are found.
        let items: Vec<Option<T>> = list.iter().map(|item| read(self, item)).collect();
        items.into_iter().collect()
    }

    fn prefix(&mut self, value: &Value<'_>) -> Option<Prefix> {
        let text = self.string(value, "a block of addresses in quotes")?;
        Prefix::parse(text).map_err(|error| self.note(&value.span(), format!("`{text}` {error}"))).ok()
    }

    fn address(&mut self, value: &Value<'_>) -> Option<IpAddr> {
        let text = self.string(value, "an address in quotes")?;
        text.parse().map_err(|_error| self.note(&value.span(), format!("`{text}` is no address"))).ok()
    }

    fn clients(&mut self, value: &Value<'_>, clients: &mut Clients) {
        let Some(table) = value.get_ref().as_table() else {
            self.note(
                &value.span(),
                "this is not a table: write { control = [..], proxy = [..], gateway = [..] }",
            );
            return;
        };
        *clients = Clients::default();
        for (key, value) in table {
            let into = match key.get_ref().as_ref() {
                "control" => &mut clients.control,
                "proxy" => &mut clients.proxy,
                "gateway" => &mut clients.gateway,
                other => {
                    self.note(
                        &key.span(),
                        format!("there are no clients `{other}`; there are control, proxy and gateway"),
                    );
                    continue;
                }
            };
            let users = |reader: &mut Self, value: &Value<'_>| reader.user(value).map(|user| user.uid);
            if let Some(users) = self.each(value, users) {
                *into = users;
            }
        }
    }
}

/// Finds a user on this host by name or number. A number need not be in the user database.
pub fn user_on_this_host(named: &str) -> Option<User> {
    let known = |user: nix::unistd::User| User { uid: user.uid.as_raw(), gid: user.gid.as_raw() };
    if let Ok(uid) = named.parse::<u32>() {
        let found = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten();
        return Some(found.map_or(User { uid, gid: uid }, known));
    }
    nix::unistd::User::from_name(named).ok().flatten().map(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn users(named: &str) -> Option<User> {
        let uid = match named {
            "root" => 0,
            "darwin" => 900,
            number => number.parse().ok()?,
        };
        Some(User { uid, gid: uid })
    }

    fn read(text: &str) -> Result<Config, Vec<String>> {
        Config::read(text, &users).map_err(|all| all.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_empty_text_lets_root_control_and_nobody_listen() {
        let config = read("").unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(config.clients.control, [0]);
        assert!(config.clients.of(Role::Proxy).is_empty() && config.clients.of(Role::Gateway).is_empty());
        assert_eq!((config.lan.len(), config.metadata.len()), (5, 3));
    }

    #[test]
    fn the_published_example_is_read() {
        let config = read(
            r#"
            socket = "/run/darwin/netd.sock"
            spool = "/var/lib/darwin/signals/netd.jsonl"
            proxy_port = 3128
            gateway_port = 3129
            clients = { control = ["root", "darwin"], proxy = [901], gateway = ["darwin"] }
            lan = ["10.0.0.0/8", "fc00::/7"]
            metadata = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200"]
            "#,
        )
        .unwrap();
        assert_eq!(config.clients, Clients { control: vec![0, 900], proxy: vec![901], gateway: vec![900] });
    }

    #[test]
    fn a_list_that_is_written_empty_is_empty() {
        let config = read("clients = { proxy = [901] }\nlan = []").unwrap();
        assert!(config.clients.control.is_empty(), "control was not written and must not be root");
        assert!(config.lan.is_empty());
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let text = r#"socket = "netd.sock"
proxy_port = 80
clients = { control = ["nobody-here", "root"], admin = [0] }
lan = ["10.1.0.0/8", 7]
metadata = "169.254.169.254"
cockpit = true
"#;
        assert_eq!(
            read(text).unwrap_err(),
            [
                "1:10: `netd.sock` is not an absolute path",
                "2:14: this is not a whole number from 1024 to 65535",
                "3:24: there is no user `nobody-here` on this host; make it or write a number",
                "3:48: there are no clients `admin`; there are control, proxy and gateway",
                "4:8: `10.1.0.0/8` has bits set after its length; write 10.0.0.0/8",
                "4:22: this is not a block of addresses in quotes",
                "5:12: this is not a list in brackets",
                "6:1: there is no key `cockpit`; there are socket, spool, spool_bytes_max, user, proxy_port, gateway_port, clients, lan and metadata",
            ]
        );
    }

    #[test]
    fn the_number_that_stands_for_anybody_is_nobodys() {
        assert_eq!(
            read("clients = { proxy = [65534] }").unwrap_err(),
            ["1:22: user 65534 is how every user outside this user namespace looks: name another"]
        );
    }

    #[test]
    fn two_doors_at_one_port_are_a_mistake() {
        assert_eq!(
            read("gateway_port = 3128").unwrap_err(),
            ["1:16: proxy_port and gateway_port are the same port"]
        );
    }

    proptest! {
        #[test]
        fn no_text_panics_the_reader(text in ".{0,120}") {
            drop(read(&text));
        }
    }
}
