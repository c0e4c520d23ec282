//! Everything that stands before the first agent is born: folders, certificates, image, namespaces, processes.
//!
//! Dropping a stage takes it all down, in the order that an operator would: control plane, proxy, netd, and then
//! what is the demo's own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caps::Capability;

use super::files::{self, FilesError, HOST_ADDRESS, LIBRARY_ADDRESS, MARKET_ADDRESS, Places, Rates};
use super::namespace::{End, Namespace, NamespaceError};
use super::pki::{Authority, PkiError};
use super::process::{self, Process, ProcessError, Start};
use super::rootfs::{self, RootfsError};
use super::scratch::{Scratch, ScratchError};
use super::users::{UserError, Users};
use super::world::{LIBRARY, MARKET};
use crate::spawn::launch::Launch;
use crate::spawn::{Finished, OURSELVES, Program, SpawnError};

/// Longest that an audit of the image may take.
const AUDIT_LIMIT: Duration = Duration::from_mins(1);
/// Most bytes of an audit's report that are kept.
const AUDIT_BYTES_MAX: u64 = 1 << 20;

/// Why the stage does not stand. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// Users and the user namespace.
    #[error(transparent)]
    User(#[from] UserError),
    /// The scratch folder.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// A file.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A certificate.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The image.
    #[error(transparent)]
    Rootfs(#[from] RootfsError),
    /// A network namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A program that runs to its end.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The kernel, or its settings.
    #[error("{0}")]
    Kernel(String),
    /// The provider said something else than its address.
    #[error("read the address of the stand-in provider from {0:?}")]
    Address(String),
    /// No random bytes for the webhook's secret.
    #[error("read /dev/urandom")]
    Random(#[source] std::io::Error),
}

/// What the stage is built for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// How fast the clock runs.
    pub rates: Rates,
    /// Whether the judge is the real one.
    pub live_judge: bool,
}

/// The stage. Fields are dropped from the top: the control plane first, the folder last.
#[derive(Debug)]
pub struct Stage {
    serve: Option<Process>,
    proxy: Option<Process>,
    netd: Option<Process>,
    provider: Option<Process>,
    world: Option<Process>,
    /// Where netd and the proxy run.
    host: Namespace,
    /// Where the sites are.
    outside: Namespace,
    provider_address: Option<SocketAddr>,
    wanted: Wanted,
    /// What did not end by itself when it was asked to.
    unwilling: Vec<&'static str>,
    users: Users,
    places: Places,
    scratch: Scratch,
}

/// What an audit of an image found.
#[derive(Debug, Clone)]
pub struct Audit {
    /// The exit code of `image-audit scan`.
    pub code: i32,
    /// Its report for people.
    pub report: String,
}

impl Stage {
    /// Makes folders, certificates, the image and the namespaces; starts nothing yet. Must be called while the
    /// process has one thread, for the sake of ordinary users.
    ///
    /// # Errors
    /// [`StageError`].
    pub fn build(wanted: Wanted) -> Result<Self, StageError> {
        let users = Users::prepare()?;
        let scratch = Scratch::make()?;
        let places = Places::make(&scratch, &users)?;
        let authority = Authority::make()?;
        issue(&authority, &places)?;
        let agent = process::sibling("darwin-sample-agent")?;
        rootfs::make(&agent, &places.image, authority.certificate_pem())?;
        rootfs::make(&agent, &places.bad_image, authority.certificate_pem())?;
        rootfs::add_setuid_file(&places.bad_image)?;
        let (host, outside) = (Namespace::make()?, Namespace::make()?);
        let here = End { name: "world", addresses: &[HOST_ADDRESS], prefix_bits: 24 };
        let there = End { name: "host", addresses: &[MARKET_ADDRESS, LIBRARY_ADDRESS], prefix_bits: 24 };
        host.link_with(&outside, &here, &there)?;
        outside.open_low_ports()?;
        let (serve, proxy, netd, provider, world) = (None, None, None, None, None);
        let provider_address = None;
        Ok(Self {
            serve,
            proxy,
            netd,
            provider,
            world,
            host,
            outside,
            provider_address,
            wanted,
            unwilling: Vec::new(),
            users,
            places,
            scratch,
        })
    }

    /// Where everything is.
    pub const fn places(&self) -> &Places {
        &self.places
    }

    /// Who runs what.
    pub const fn users(&self) -> &Users {
        &self.users
    }

    /// The scratch folder.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Tries as the control plane's user what every episode needs of the kernel.
    ///
    /// # Errors
    /// [`StageError::Kernel`] with what is missing and what to do.
    pub fn probe(&self) -> Result<(), StageError> {
        let user = Some((self.users.serve, self.users.group));
        let launch = Launch { user, ..Launch::default() };
        let tried = launch.program(ourselves("demo-probe")?)?.run(AUDIT_BYTES_MAX, AUDIT_LIMIT)?;
        if tried.status.success() {
            return Ok(());
        }
        Err(StageError::Kernel(String::from_utf8_lossy(&tried.errors).trim().to_owned()))
    }

    /// Audits the image that agents run from, and the one that must be refused.
    ///
    /// # Errors
    /// [`StageError`] where the audit could not run at all.
    pub fn audits(&self) -> Result<(Audit, Audit), StageError> {
        Ok((audit(&self.places.image)?, audit(&self.places.bad_image)?))
    }

    /// Starts what is the demo's own: sites, name server, provider.
    ///
    /// # Errors
    /// [`StageError`].
    pub fn start_world(&mut self) -> Result<(), StageError> {
        let places = &self.places;
        let program = ourselves("demo-world")?
            .arg("--folder")
            .arg(&places.world)
            .arg("--api")
            .arg(places.api())
            .args(["--market", &MARKET_ADDRESS.to_string(), "--library", &LIBRARY_ADDRESS.to_string()]);
        let user = self.users.world;
        let mut world = self.start("demo-world", program, Some(&self.outside), user, &[])?;
        world.ready_line()?;
        self.world = Some(world);
        let program = ourselves("demo-provider")?.arg("--folder").arg(&self.places.provider);
        let mut provider = self.start("demo-provider", program, None, self.users.provider, &[])?;
        let line = provider.ready_line()?;
        self.provider_address = Some(line.parse().map_err(|_malformed| StageError::Address(line))?);
        self.provider = Some(provider);
        Ok(())
    }

    /// Starts netd, and then the proxy as its subscriber.
    ///
    /// # Errors
    /// [`StageError`].
    pub fn start_containment(&mut self) -> Result<(), StageError> {
        let config = files::write_netd(&self.places, &self.users)?;
        let program =
            Program::new(process::sibling("darwin-netd")?)?.arg("serve").arg("--config").arg(config);
        let mut netd = self.start_netd(program)?;
        let socket = self.places.netd_socket();
        netd.ready_socket(|| netd::client::Client::connect(&socket).is_ok())?;
        self.netd = Some(netd);
        self.start_proxy()
    }

    /// Starts the proxy; also again, after [`Stage::stop_proxy`].
    ///
    /// # Errors
    /// [`StageError`].
    pub fn start_proxy(&mut self) -> Result<(), StageError> {
        let (config, policy) = files::write_proxy(&self.places)?;
        let program = Program::new(process::sibling("darwin-proxy")?)?
            .arg("serve")
            .arg("--config")
            .arg(config)
            .arg("--policy")
            .arg(policy);
        self.proxy = Some(self.start("darwin-proxy", program, Some(&self.host), self.users.proxy, &[])?);
        Ok(())
    }

    /// Starts the control plane; also again, after [`Stage::kill_serve`].
    ///
    /// # Errors
    /// [`StageError`].
    pub fn start_serve(&mut self) -> Result<(), StageError> {
        self.launch_serve()?;
        let api = self.places.api();
        if let Some(serve) = &mut self.serve {
            serve.ready_socket(|| process::answers(&api))?;
        }
        Ok(())
    }

    /// Starts the control plane and does not wait for it to be ready.
    ///
    /// # Errors
    /// [`StageError`].
    pub fn launch_serve(&mut self) -> Result<(), StageError> {
        let provider = self.provider_address.ok_or_else(|| StageError::Address(String::new()))?;
        let config = files::write_serve(&self.places, provider, self.wanted.rates, self.wanted.live_judge)?;
        let mut program = ourselves("serve")?.arg("--config").arg(config);
        if self.wanted.live_judge {
            program =
                program.env("ANTHROPIC_API_KEY", std::env::var("ANTHROPIC_API_KEY").unwrap_or_default());
        }
        self.serve = Some(self.start("darwin-serve", program, None, self.users.serve, &[])?);
        Ok(())
    }

    /// How fast the clock runs from the next start of the control plane on.
    pub fn set_rates(&mut self, rates: Rates) {
        self.wanted.rates = rates;
    }

    /// Runs `darwin verify` over the journal.
    ///
    /// # Errors
    /// [`SpawnError`].
    pub fn verify(&self) -> Result<Finished, SpawnError> {
        let program = ourselves("verify")?.arg("--journal").arg(self.places.journal());
        program.run(AUDIT_BYTES_MAX, AUDIT_LIMIT)
    }

    /// Fails if any process has ended by itself.
    ///
    /// # Errors
    /// [`ProcessError::Ended`].
    pub fn check(&mut self) -> Result<(), ProcessError> {
        let all = [&mut self.serve, &mut self.proxy, &mut self.netd, &mut self.provider, &mut self.world];
        all.into_iter().flatten().try_for_each(Process::check)
    }

    /// Asks the control plane to end, and waits.
    pub fn stop_serve(&mut self) {
        let serve = self.serve.take();
        self.end(serve);
    }

    /// Asks the proxy to end, and waits: then its log is whole.
    pub fn stop_proxy(&mut self) {
        let proxy = self.proxy.take();
        self.end(proxy);
    }

    fn end(&mut self, process: Option<Process>) {
        if let Some(mut process) = process
            && !process.stop()
        {
            self.unwilling.push(process.name());
        }
    }

    /// Kills the control plane, as a crash would.
    pub fn kill_serve(&mut self) {
        if let Some(mut serve) = self.serve.take() {
            serve.kill();
        }
    }

    /// Ends everything in order; the names of those that ever did not end by themselves, with success.
    pub fn stop(&mut self) -> Vec<&'static str> {
        self.stop_serve();
        self.stop_proxy();
        let netd = self.netd.take();
        self.end(netd);
        // The demo's own have nothing to put away.
        for mut process in [&mut self.provider, &mut self.world].into_iter().filter_map(Option::take) {
            process.kill();
        }
        std::mem::take(&mut self.unwilling)
    }

    fn start(
        &self,
        name: &'static str,
        program: Program,
        namespace: Option<&Namespace>,
        user: u32,
        caps: &[Capability],
    ) -> Result<Process, StageError> {
        let start = Start {
            name,
            program,
            namespace,
            user: Some((user, self.users.group)),
            caps: caps.to_vec(),
            logs: &self.places.logs,
        };
        Ok(Process::start(start)?)
    }

    /// netd starts with the driver's user where that is root, for its head gives up that user itself; elsewhere
    /// with the two capabilities that it needs.
    fn start_netd(&self, program: Program) -> Result<Process, StageError> {
        let caps = [Capability::CAP_NET_ADMIN, Capability::CAP_SYS_ADMIN];
        let start = Start {
            name: "darwin-netd",
            program,
            namespace: Some(&self.host),
            user: (!self.users.apart()).then_some((self.users.netd, self.users.group)),
            caps: caps.to_vec(),
            logs: &self.places.logs,
        };
        Ok(Process::start(start)?)
    }
}

fn ourselves(subcommand: &str) -> Result<Program, SpawnError> {
    Ok(Program::new(OURSELVES)?.arg(subcommand))
}

fn issue(authority: &Authority, places: &Places) -> Result<(), StageError> {
    authority.issue(&places.world, "market", &[MARKET])?;
    authority.issue(&places.world, "library", &[LIBRARY])?;
    authority.issue(&places.provider, "provider", &["127.0.0.1"])?;
    files::write(&places.serve.join("ca.pem"), authority.certificate_pem(), 0o644)?;
    let secret = webhook_secret().map_err(StageError::Random)?;
    for (folder, name) in [(&places.world, "webhook.secret"), (&places.serve, "webhook.secret")] {
        files::write(&folder.join(name), &secret, 0o644)?;
    }
    Ok(())
}

fn webhook_secret() -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("whsec_{}\n", STANDARD.encode(bytes)))
}

fn audit(image: &Path) -> Result<Audit, StageError> {
    let source = format!("dir:{}", image.display());
    let program: PathBuf = process::sibling("image-audit")?;
    let finished = Program::new(program)?.args(["scan", &source]).run(AUDIT_BYTES_MAX, AUDIT_LIMIT)?;
    let code = finished.status.code().unwrap_or(-1);
    let mut report = String::from_utf8_lossy(&finished.output).into_owned();
    report.push_str(&String::from_utf8_lossy(&finished.errors));
    Ok(Audit { code, report })
}
