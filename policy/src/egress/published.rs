//! What others published: metadata services, public resolvers, public suffixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::HostName;

/// Addresses of the clouds' metadata services: the shared link-local one, AWS over IPv6, Alibaba, Azure's wire
/// server, Oracle's and Tencent's alternative, AWS's task and time endpoints.
pub(super) const METADATA_ADDRESSES: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 0, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Names of metadata services; whatever stands under one is one too.
const METADATA_NAMES: &[&str] = &[
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.com",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.oraclecloud.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
];

/// Public resolvers that answer over HTTPS: a name asked there leaves unseen.
const RESOLVER_NAMES: &[&str] = &[
    "1dot1dot1dot1.cloudflare-dns.com",
    "adguard-dns.com",
    "cleanbrowsing.org",
    "cloudflare-dns.com",
    "dns.adguard.com",
    "dns.alidns.com",
    "dns.google",
    "dns.google.com",
    "dns.mullvad.net",
    "dns.nextdns.io",
    "dns.quad9.net",
    "dns0.eu",
    "dns10.quad9.net",
    "dns11.quad9.net",
    "dns64.dns.google",
    "dns9.quad9.net",
    "doh.cleanbrowsing.org",
    "doh.dns.sb",
    "doh.opendns.com",
    "doh.pub",
    "doh.umbrella.com",
    "mozilla.cloudflare-dns.com",
    "nextdns.io",
    "one.one.one.one",
    "security.cloudflare-dns.com",
];

/// Suffixes of two labels under which strangers register names. Every suffix of one label counts as public besides.
///
/// A selection of the Public Suffix List: the registries' and the hosting companies' that are met most. A wildcard
/// over one that is missing here is accepted, so a reviewer still reads wildcards.
const PUBLIC_SUFFIXES: &[&str] = &[
    "ac.jp",
    "ac.nz",
    "ac.uk",
    "ac.za",
    "appspot.com",
    "asn.au",
    "azurecontainer.io",
    "azureedge.net",
    "azurewebsites.net",
    "blogspot.com",
    "cloudapp.net",
    "cloudfront.net",
    "cloudfunctions.net",
    "co.il",
    "co.in",
    "co.jp",
    "co.ke",
    "co.kr",
    "co.nz",
    "co.th",
    "co.uk",
    "co.za",
    "com.ar",
    "com.au",
    "com.br",
    "com.cn",
    "com.co",
    "com.hk",
    "com.mx",
    "com.my",
    "com.ng",
    "com.pl",
    "com.sg",
    "com.tr",
    "com.tw",
    "com.ua",
    "com.vn",
    "deno.dev",
    "edu.au",
    "edu.cn",
    "eu.org",
    "firebaseapp.com",
    "fly.dev",
    "github.io",
    "gitlab.io",
    "glitch.me",
    "go.jp",
    "gov.au",
    "gov.br",
    "gov.cn",
    "gov.in",
    "gov.uk",
    "herokuapp.com",
    "id.au",
    "lovable.app",
    "ltd.uk",
    "me.uk",
    "myshopify.com",
    "ne.jp",
    "net.au",
    "net.br",
    "net.cn",
    "net.nz",
    "net.uk",
    "netlify.app",
    "nhs.uk",
    "ngrok-free.app",
    "ngrok.app",
    "ngrok.io",
    "onrender.com",
    "or.jp",
    "or.kr",
    "org.au",
    "org.br",
    "org.cn",
    "org.nz",
    "org.uk",
    "pages.dev",
    "plc.uk",
    "police.uk",
    "r2.dev",
    "railway.app",
    "repl.co",
    "replit.app",
    "replit.dev",
    "run.app",
    "sch.uk",
    "streamlit.app",
    "surge.sh",
    "trycloudflare.com",
    "up.railway.app",
    "vercel.app",
    "web.app",
    "workers.dev",
];

/// Whether the name is a metadata service's, or stands under one.
pub fn is_metadata_name(name: &HostName) -> bool {
    METADATA_NAMES
        .iter()
        .any(|known| name.as_str() == *known || (known.contains('.') && name.is_under(known)))
}

/// Whether the name is a public resolver's, or stands under one.
pub fn is_resolver_name(name: &HostName) -> bool {
    RESOLVER_NAMES.iter().any(|known| name.as_str() == *known || name.is_under(known))
}

/// Whether strangers register names right under this one, as far as it is known here.
pub fn is_public_suffix(name: &HostName) -> bool {
    !name.as_str().contains('.') || PUBLIC_SUFFIXES.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn published_names_are_names() {
        for text in METADATA_NAMES.iter().chain(RESOLVER_NAMES).chain(PUBLIC_SUFFIXES) {
            assert_eq!(name(text).as_str(), *text);
        }
    }

    #[test]
    fn metadata_names_cover_what_is_under_them() {
        assert!(is_metadata_name(&name("metadata.google.internal")));
        assert!(is_metadata_name(&name("x.metadata.goog")));
        assert!(is_metadata_name(&name("metadata")));
        assert!(!is_metadata_name(&name("metadata.example.com")));
        assert!(!is_metadata_name(&name("google.internal")));
    }

    #[test]
    fn resolvers_and_suffixes_are_known() {
        assert!(is_resolver_name(&name("dns.google")));
        assert!(is_resolver_name(&name("abc123.dns.nextdns.io")));
        assert!(!is_resolver_name(&name("google.com")));
        assert!(
            is_public_suffix(&name("com"))
                && is_public_suffix(&name("co.uk"))
                && is_public_suffix(&name("github.io"))
        );
        assert!(!is_public_suffix(&name("example.com")));
    }
}
