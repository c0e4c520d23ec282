//! The enumeration of refusals: what a client, a log and a metric call each cause.

use std::fmt;

/// Whose doing a refusal is; it decides the status and whether asking again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The request is malformed: 4xx but 403; final.
    Caller,
    /// Policy says no: 403; final.
    Policy,
    /// A quota is used up: 429.
    Quota,
    /// The network or the target: 502 or 504.
    Peer,
    /// The proxy itself is full or on its way out: 503.
    Host,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $status:literal, $fault:ident, $error:literal, $message:literal;)*) => {
        /// Why a connection was refused: one code a cause.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code in logs, bodies, reason phrases and `Proxy-Status`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The status of the answer. After the 200 none is sent any more: the tunnel is closed.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// Whose doing it is.
            pub const fn fault(self) -> Fault {
                match self { $(Self::$variant => Fault::$fault,)* }
            }

            /// The error type of `Proxy-Status` (RFC 9209 section 2.3).
            pub const fn proxy_error(self) -> &'static str {
                match self { $(Self::$variant => $error,)* }
            }

            /// What a person is told, in a sentence without the particulars.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }
        }
    };
}

codes! {
    /// The head breaks the grammar.
    MalformedHead = "malformed_head", 400, Caller, "http_request_error", "the request head is malformed";
    /// The target breaks the grammar.
    MalformedTarget = "malformed_target", 400, Caller, "http_request_error", "the target is not HOST:PORT in canonical grammar";
    /// No, a second or another `Host`.
    HostHeader = "host_header", 400, Caller, "http_request_error", "the Host header is missing, repeated or differs from the target";
    /// A body was announced.
    BodyNotAllowed = "body_not_allowed", 400, Caller, "http_request_error", "a CONNECT has no body";
    /// The HTTP/2 preface.
    Http2 = "http2", 400, Caller, "http_protocol_error", "this proxy speaks HTTP/1.1 CONNECT only";
    /// TLS or other bytes where a head should be.
    NotHttp = "not_http", 400, Caller, "http_protocol_error", "this is not HTTP; send CONNECT HOST:PORT in plain text first";
    /// Another method.
    Method = "method", 405, Caller, "http_request_error", "only CONNECT is served; plain http:// is not forwarded, use https://";
    /// The head did not come in time.
    HeadTimeout = "head_timeout", 408, Caller, "http_request_error", "the request head did not arrive in time";
    /// More than 16 KiB of head.
    HeadTooLarge = "head_too_large", 431, Caller, "http_request_error", "the request head is larger than 16 KiB";
    /// Another version of HTTP.
    Version = "version", 505, Caller, "http_protocol_error", "only HTTP/1.0 and HTTP/1.1 are served";

    /// No policy is loaded.
    NoPolicy = "no_policy", 403, Policy, "http_request_denied", "no policy is loaded";
    /// The caller's profile is not in the policy.
    NoProfile = "no_profile", 403, Policy, "http_request_denied", "the egress profile of this agent does not exist";
    /// No rule names the host.
    HostNotAllowed = "host_not_allowed", 403, Policy, "http_request_denied", "no rule allows this host";
    /// A rule names the host, none the port.
    PortNotAllowed = "port_not_allowed", 403, Policy, "http_request_denied", "the host is allowed, but not on this port";
    /// A deny rule names it.
    DeniedByRule = "denied_by_rule", 403, Policy, "http_request_denied", "a rule denies this host";
    /// An address where a name is needed.
    IpLiteral = "ip_literal", 403, Policy, "http_request_denied", "an address is refused unless a rule names it; use the host name";
    /// A metadata service, by name or address.
    Metadata = "metadata", 403, Policy, "destination_ip_prohibited", "metadata services are never reachable";
    /// A public resolver.
    Resolver = "doh_host", 403, Policy, "http_request_denied", "public resolvers are refused unless a rule names them";
    /// The proxy itself.
    Loop = "loop", 403, Policy, "proxy_loop_detected", "the target is this proxy itself";
    /// The name has no address that may be dialled.
    AddressRefused = "address_refused", 403, Policy, "destination_ip_prohibited", "the name resolves to no public address";
    /// The name is pinned, and has none of those addresses.
    PinMismatch = "pin_mismatch", 403, Policy, "destination_ip_prohibited", "the name resolves to none of the addresses that its rule lists";
    /// The server name in the hello is another.
    SniMismatch = "sni_mismatch", 403, Policy, "http_request_denied", "the TLS server name differs from the CONNECT host";
    /// The server name in the hello is denied by a rule.
    SniDenied = "sni_denied", 403, Policy, "http_request_denied", "a rule denies the TLS server name";
    /// The hello has no server name.
    SniMissing = "sni_missing", 403, Policy, "http_request_denied", "the TLS hello names no server";
    /// The hello's server name breaks the grammar.
    SniMalformed = "sni_malformed", 403, Policy, "http_request_denied", "the TLS server name is malformed";
    /// A hello that cannot be read.
    HelloMalformed = "hello_malformed", 403, Policy, "http_request_denied", "the TLS hello is malformed";
    /// More than 64 KiB of hello.
    HelloTooLarge = "hello_too_large", 403, Policy, "http_request_denied", "the TLS hello is larger than 64 KiB";
    /// The tunnel began with something else.
    NotTls = "not_tls", 403, Policy, "http_request_denied", "the tunnel did not begin with a TLS hello";
    /// The hello did not come whole in time.
    HelloTimeout = "hello_timeout", 403, Policy, "http_request_denied", "the TLS hello did not arrive in time";
    /// Nothing at all came in the tunnel: a protocol in which the server speaks first, or a client that went.
    NoClientBytes = "no_client_bytes", 403, Policy, "http_request_denied", "the client sent nothing in the tunnel; server-first protocols need an opaque rule";
    /// An encrypted hello, under a rule that refuses it.
    EchRefused = "ech_refused", 403, Policy, "http_request_denied", "a rule refuses encrypted client hellos";

    /// The resolver has no answer for the name.
    NameNotFound = "name_not_found", 502, Peer, "dns_error", "the name has no address";
    /// The look-up failed.
    LookupFailed = "lookup_failed", 502, Peer, "dns_error", "the look-up failed";
    /// The look-up took too long.
    LookupTimeout = "lookup_timeout", 504, Peer, "dns_timeout", "the look-up took too long";
    /// No address could be connected.
    DialFailed = "dial_failed", 502, Peer, "connection_refused", "the target refused the connection";
    /// No address answered in time.
    DialTimeout = "dial_timeout", 504, Peer, "connection_timeout", "the target did not answer in time";

    /// The caller has as many connections as it may.
    CallerBusy = "caller_busy", 503, Host, "connection_limit_reached", "this agent has as many connections as it may have at once";
    /// The proxy is out of descriptors or memory.
    ProxyBusy = "proxy_busy", 503, Host, "proxy_internal_error", "the proxy is out of resources";
    /// The proxy is ending.
    Draining = "draining", 503, Host, "connection_terminated", "the proxy is restarting";
    /// The client went before an answer.
    ClientGone = "client_gone", 400, Caller, "http_request_error", "the client closed before an answer";
}

impl Code {
    /// The status with its standard name, as in an answer's first line.
    pub const fn status_name(self) -> &'static str {
        match self.status() {
            400 => "Bad Request",
            403 => "Forbidden",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            505 => "HTTP Version Not Supported",
            _ => "Refused",
        }
    }

    /// Whether the same request can never be answered otherwise under the same policy.
    pub const fn is_final(self) -> bool {
        match self.fault() {
            Fault::Caller => self.status() == 400,
            Fault::Policy => true,
            Fault::Quota | Fault::Peer | Fault::Host => false,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_cause_has_a_code_and_a_status_of_its_fault() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            assert_ne!(code.status_name(), "Refused", "{code}");
            let fits = match code.fault() {
                Fault::Caller => matches!(code.status(), 400 | 405 | 408 | 431 | 505),
                Fault::Policy => code.status() == 403,
                Fault::Quota => code.status() == 429,
                Fault::Peer => matches!(code.status(), 502 | 504),
                Fault::Host => code.status() == 503,
            };
            assert!(fits, "{code}");
        }
    }

    #[test]
    fn only_policy_and_malformed_answers_are_final() {
        assert!(Code::HostNotAllowed.is_final() && Code::MalformedTarget.is_final());
        assert!(!Code::Method.is_final() && !Code::DialFailed.is_final() && !Code::Draining.is_final());
    }
}
