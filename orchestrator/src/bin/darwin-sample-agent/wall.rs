//! What an agent tries that does not want the proxy: every attempt here must fail.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Longest wait for one attempt.
const PATIENCE: Duration = Duration::from_millis(400);

/// Direct TCP: the market's own address, public ones in both families, the metadata service, a neighbour.
const TCP: [&str; 6] = [
    "10.231.77.2:443",
    "1.1.1.1:443",
    "[2606:4700:4700::1111]:443",
    "169.254.169.254:80",
    "192.168.1.1:22",
    "10.231.77.1:3128",
];

/// Direct UDP: name servers outside, Docker's, and the demo's own.
const UDP: [&str; 4] = ["1.1.1.1:53", "127.0.0.11:53", "10.231.77.2:53", "[2606:4700:4700::1111]:53"];

/// A question for `leak.example.test`, as on the wire.
const QUESTION: &[u8] =
    b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04leak\x07example\x04test\x00\x00\x01\x00\x01";

/// Tries everything; one line an attempt, and whether any got through.
pub(crate) fn climb() -> (Vec<String>, bool) {
    let tcp = TCP.iter().map(|target| (format!("TCP {target}"), try_tcp(target)));
    let udp = UDP.iter().map(|target| (format!("UDP {target}"), try_udp(target)));
    let mut through = false;
    let mut lines = Vec::new();
    for (what, outcome) in tcp.chain(udp) {
        through |= outcome.is_ok();
        lines.push(match outcome {
            Ok(()) => format!("{what}: got through"),
            Err(error) => format!("{what}: {error}"),
        });
    }
    (lines, through)
}

fn try_tcp(target: &str) -> io::Result<()> {
    let address: SocketAddr = target.parse().map_err(io::Error::other)?;
    TcpStream::connect_timeout(&address, PATIENCE).map(drop)
}

fn try_udp(target: &str) -> io::Result<()> {
    let address: SocketAddr = target.parse().map_err(io::Error::other)?;
    let own = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(own)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(address)?;
    socket.send(QUESTION)?;
    socket.recv(&mut [0; 512]).map(drop)
}
