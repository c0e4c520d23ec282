//! The look-up: one for a connection, and only for a name that was permitted.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use policy::egress::{Code, Host, Permit};

/// Look-ups that one resolver may have in flight.
const IN_FLIGHT_MAX: usize = 4096;

/// Why there is no resolver. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
#[error("set up the resolver: name servers under [resolver] in the configuration, or see /etc/resolv.conf")]
pub struct ResolverError(#[source] NetError);

/// Looks names up; nothing else in the proxy holds a resolver.
#[derive(Clone)]
pub(crate) struct Resolver {
    inner: TokioResolver,
    limit: Duration,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Resolver {
    /// A resolver that asks these servers, or the host's own where there is none.
    pub(crate) fn new(servers: &[SocketAddr], limit: Duration) -> Result<Self, ResolverError> {
        let mut builder = if servers.is_empty() {
            TokioResolver::builder_tokio().map_err(ResolverError)?
        } else {
            let servers = servers.iter().map(|&server| name_server(server)).collect();
            let config = ResolverConfig::from_parts(None, Vec::new(), servers);
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.timeout = limit / 2;
        options.attempts = 1;
        options.num_concurrent_reqs = 1;
        options.max_active_requests = IN_FLIGHT_MAX;
        // Each connection is judged by an answer of its own; a cache would tell agents of each other, by timing.
        options.cache_size = 0;
        if !servers.is_empty() {
            options.use_hosts_file = ResolveHosts::Never;
        }
        Ok(Self { inner: builder.build().map_err(ResolverError)?, limit })
    }

    /// Every address of the permitted name, in the order of the answer; none for a host that is an address.
    pub(crate) async fn look_up(&self, permit: &Permit) -> Result<Vec<IpAddr>, Code> {
        let Host::Name(host) = &permit.authority().host else { return Ok(Vec::new()) };
        // Fully qualified: the host's search list must not turn it into another name.
        let mut name = Name::from_ascii(host.as_str()).map_err(|_error| Code::LookupFailed)?;
        name.set_fqdn(true);
        match tokio::time::timeout(self.limit, self.inner.lookup_ip(name)).await {
            Ok(Ok(found)) => Ok(found.iter().collect()),
            Ok(Err(error)) => Err(code_of(&error)),
            Err(_elapsed) => Err(Code::LookupTimeout),
        }
    }
}

fn name_server(server: SocketAddr) -> NameServerConfig {
    let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
    udp.port = server.port();
    tcp.port = server.port();
    NameServerConfig::new(server.ip(), true, vec![udp, tcp])
}

fn code_of(error: &NetError) -> Code {
    if error.is_nx_domain() || error.is_no_records_found() {
        return Code::NameNotFound;
    }
    if matches!(error, NetError::Timeout) { Code::LookupTimeout } else { Code::LookupFailed }
}
