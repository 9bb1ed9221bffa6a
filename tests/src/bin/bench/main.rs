//! Benchmarks against named peers, each pair in the same run. `ci/bench.sh` builds this and calls it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_engine::docker::Docker;
use reprise_engine::sandbox::Sandbox;
use reprise_engine::{
    Engine, Exec, InjectedFile, Labels, Maker, Mount, START_FILES, StartSpec, Started, TOOLS_DIR,
    init_command,
};
use reprise_gateway::{Gateway, Masker, Sink, WireLog};
use reprise_model::{InitSpec, Mark, NonceBook, RunId, Stamp, WorkspaceId};

mod cluster;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Runtime::new()?;
    match args.as_slice() {
        ["restart", program, rounds] => runtime.block_on(restart(program, rounds.parse()?)),
        ["start", program, rounds] => runtime.block_on(start(program, rounds.parse()?)),
        ["cluster", program, rounds] => runtime.block_on(cluster::restart(program, rounds.parse()?)),
        ["scale", program, workspaces] => {
            runtime.block_on(cluster::scale(program, workspaces.parse()?))
        }
        ["probe", program, rounds] => probe(program, rounds.parse()?),
        ["gateway", seconds] => gateway(seconds.parse()?),
        ["serve", kind] => serve(kind),
        _ => Err("bench restart|start|probe|cluster PROGRAM ROUNDS, bench scale PROGRAM WORKSPACES, or bench gateway SECONDS".into()),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn show(what: &str, ours: Duration, peer: &str, theirs: Duration, target: &str) {
    println!(
        "{what}: {:.1} ms, {peer}: {:.1} ms, ratio {:.2} (target: {target})",
        ours.as_secs_f64() * 1000.0,
        theirs.as_secs_f64() * 1000.0,
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
}

fn spec(program: &Path, labels: &Labels, gateway: std::net::SocketAddr) -> StartSpec {
    let init = InitSpec {
        scripts: Vec::new(),
        home: "/home/coder".to_owned(),
        directory: "/home/coder".to_owned(),
        stop_deadline: 10,
        ..InitSpec::default()
    };
    let inside = format!("{TOOLS_DIR}/reprise");
    StartSpec {
        labels: labels.clone(),
        hostname: "bench".to_owned(),
        gateway,
        home: "/home/coder".into(),
        init: init_command(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        mounts: vec![Mount {
            source: program.to_owned(),
            target: inside.into(),
        }],
        files: vec![InjectedFile {
            name: "spec.json".to_owned(),
            content: serde_json::to_string(&init).expect("a spec is JSON"),
        }],
        in_place: false,
        same_name: false,
    }
}

fn labels() -> Labels {
    Labels {
        maker: Maker::this(RunId::draw()),
        workspace: WorkspaceId::draw(),
    }
}

async fn up(engine: &dyn Engine, spec: &StartSpec) -> Result<Started> {
    let started = engine.start(spec).await?;
    engine.exec(&started.instance, &Exec::new(["true"])).await?;
    Ok(started)
}

fn docker(args: &[&str]) -> Result<String> {
    let output = Command::new("docker").args(args).output()?;
    if !output.status.success() {
        return Err(format!(
            "docker {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn image() -> Result<String> {
    docker(&[
        "images",
        "--format",
        "{{.Repository}}:{{.Tag}}",
        "reprise/workspace",
    ])?
    .lines()
    .next()
    .map(ToOwned::to_owned)
    .ok_or_else(|| "the base image is not there: `reprise doctor --obtain` makes it".into())
}

/// A restart (stop, remove, create, start, first command), by the engine and by the docker command line.
async fn restart(program: &str, rounds: usize) -> Result {
    let program = fs::canonicalize(program)?;
    let state = tempfile::tempdir()?;
    let engine = Docker::connect(state.path().to_owned()).await?;
    engine.prepare(&|_| ()).await?;
    let labels = labels();
    let route = engine.create(&labels, None).await?;
    let spec = spec(&program, &labels, route.address);
    let mut started = up(&engine, &spec).await?;

    let files = state.path().join("files");
    fs::create_dir_all(&files)?;
    fs::write(files.join("spec.json"), &spec.files[0].content)?;
    let (image, peer) = (image()?, format!("bench-{}", labels.workspace));
    let run = || -> Result {
        docker(&[
            "run",
            "-d",
            "--name",
            &peer,
            "--network",
            "none",
            "--user",
            "coder",
            "-v",
            &format!("{peer}:/home/coder"),
            "-v",
            &format!("{}:{TOOLS_DIR}/reprise:ro", program.display()),
            "-v",
            &format!("{}/spec.json:{START_FILES}/spec.json:ro", files.display()),
            "--entrypoint",
            &format!("{TOOLS_DIR}/reprise"),
            &image,
            "workspace-agent",
            "init",
            &format!("{START_FILES}/spec.json"),
        ])?;
        docker(&["exec", &peer, "true"])?;
        Ok(())
    };
    run()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        engine
            .stop(&started.instance, Duration::from_secs(10))
            .await?;
        started = up(&engine, &spec).await?;
        ours.push(began.elapsed());
        let began = Instant::now();
        docker(&["stop", &peer])?;
        docker(&["rm", &peer])?;
        run()?;
        theirs.push(began.elapsed());
    }
    engine.delete(labels.workspace).await?;
    docker(&["rm", "-f", &peer])?;
    docker(&["volume", "rm", &peer])?;
    show(
        "restart on docker",
        median(ours),
        "docker CLI",
        median(theirs),
        "at most 1.15",
    );
    Ok(())
}

/// From nothing to a first command: the sandbox, and `docker run`.
async fn start(program: &str, rounds: usize) -> Result {
    let program = fs::canonicalize(program)?;
    let state = tempfile::tempdir()?;
    let engine = Sandbox::new(program.clone(), state.path().to_owned());
    let labels = labels();
    let route = engine.create(&labels, None).await?;
    let spec = spec(&program, &labels, route.address);
    let image = image()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        let started = up(&engine, &spec).await?;
        ours.push(began.elapsed());
        engine.kill(&started.instance).await?;
        let began = Instant::now();
        docker(&["run", "--rm", "--network", "none", &image, "true"])?;
        theirs.push(began.elapsed());
    }
    engine.delete(labels.workspace).await?;
    show(
        "start of a sandbox",
        median(ours),
        "docker run",
        median(theirs),
        "at most 0.20",
    );
    Ok(())
}

/// 100,000 files, 1 GiB in all.
fn tree() -> Result<tempfile::TempDir> {
    const FILES: usize = 100_000;
    const SIZE: usize = (1 << 30) / FILES;
    let dir = tempfile::tempdir()?;
    let mut content = vec![0x5a_u8; SIZE];
    for number in 0..FILES {
        let sub = dir.path().join(format!("{:03}", number % 500));
        if number < 500 {
            fs::create_dir(&sub)?;
        }
        content[..8].copy_from_slice(&number.to_le_bytes());
        fs::write(sub.join(number.to_string()), &content)?;
    }
    Ok(dir)
}

/// Runs a command to its end; gives its time, and the most memory it and its children held, in KiB.
fn timed(command: &mut Command) -> Result<(Duration, u64)> {
    let report = tempfile::NamedTempFile::new()?;
    let mut timed = Command::new("/usr/bin/time");
    timed
        .args(["-f", "%M", "-o"])
        .arg(report.path())
        .arg(command.get_program())
        .args(command.get_args())
        .stdout(Stdio::null());
    let began = Instant::now();
    let status = timed.status()?;
    let took = began.elapsed();
    if !status.success() {
        return Err(format!("{timed:?} ended with {status}").into());
    }
    Ok((took, fs::read_to_string(report.path())?.trim().parse()?))
}

fn probe(program: &str, rounds: usize) -> Result {
    let dir = tree()?;
    let cores = std::thread::available_parallelism()?;
    let peer = format!(
        "find '{}' -type f -print0 | xargs -0 -n 500 -P {cores} sha256sum",
        dir.path().display()
    );
    let (mut ours, mut theirs, mut memory) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let (took, kib) = timed(
            Command::new(program)
                .args(["workspace-agent", "probe"])
                .arg(dir.path()),
        )?;
        ours.push(took);
        memory = memory.max(kib);
        theirs.push(timed(Command::new("sh").args(["-c", &peer]))?.0);
    }
    show(
        "probe of 100,000 files, 1 GiB",
        median(ours),
        "find + sha256sum",
        median(theirs),
        "at most 1.00",
    );
    println!("probe's memory: {} MiB (target: under 64)", memory / 1024);
    Ok(())
}

/// Keeps lines in a file, as a run does.
struct Lines {
    began: Instant,
    file: std::sync::Mutex<fs::File>,
}

impl Sink for Lines {
    fn now(&self) -> Stamp {
        Stamp {
            us: u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            wall: jiff::Timestamp::now(),
        }
    }

    fn line(&self, line: &[u8]) -> std::io::Result<()> {
        let mut file = self.file.lock().expect("nobody panics with it");
        file.write_all(&[line, b"\n"].concat())
    }
}

/// Serves on a port that it prints, on one thread, until its input closes: the gateway, or a server that answers the same
/// bytes without a look at the request.
fn serve(kind: &str) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    runtime.block_on(async move {
        if kind == "gateway" {
            let file = tempfile::tempfile()?;
            let lines = Lines {
                began: Instant::now(),
                file: std::sync::Mutex::new(file),
            };
            let book = NonceBook::from_seed(RunId::draw().uuid());
            let mut gateway = Gateway::new(book, reprise_model::TurnRule::Tools, WireLog::new(Arc::new(lines), Masker::new([])));
            gateway.serve_tcp(listener)?;
            std::future::pending::<()>().await;
        } else {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let answer = |body: axum::body::Bytes| async move {
                std::hint::black_box(body.len());
                r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"There is nothing to do."},"finish_reason":"stop"}]}"#
            };
            let router = axum::Router::new().fallback(answer);
            axum::serve(listener, router).await?;
        }
        Ok(())
    })
}

/// Sends one request after another on one connection; gives how many and how long each took.
fn load(port: u16, seconds: u64) -> Result<(f64, Duration)> {
    let text = "An agent's system prompt and its history are long. ".repeat(1000);
    let book = NonceBook::draw();
    let body = serde_json::json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": text},
            {"role": "user", "content": format!("go on {}", book.nonce(Mark::Prompt))},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"properties": {"path": {"type": "string"}}}}}],
    })
    .to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let limit = Duration::from_secs(seconds);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let request = request.clone();
            std::thread::spawn(move || -> std::io::Result<Vec<Duration>> {
                let mut stream = TcpStream::connect(("127.0.0.1", port))?;
                stream.set_nodelay(true)?;
                let began = Instant::now();
                let mut times = Vec::new();
                let mut buffer = vec![0; 16 * 1024];
                while began.elapsed() < limit {
                    let sent = Instant::now();
                    stream.write_all(request.as_bytes())?;
                    let mut reply = Vec::new();
                    // Every reply here is small, and ends with its last chunk or its JSON's last brace.
                    while !reply.ends_with(b"0\r\n\r\n") && !reply.ends_with(b"]}") {
                        let read = stream.read(&mut buffer)?;
                        if read == 0 {
                            return Err(std::io::ErrorKind::UnexpectedEof.into());
                        }
                        reply.extend_from_slice(&buffer[..read]);
                    }
                    times.push(sent.elapsed());
                }
                Ok(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.join().map_err(|_| "a client panicked")??);
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a rate needs no more than 52 bits"
    )]
    let rate = times.len() as f64 / limit.as_secs_f64();
    Ok((rate, median(times)))
}

fn gateway(seconds: u64) -> Result {
    let own: PathBuf = std::env::current_exe()?;
    let mut measured = Vec::new();
    for kind in ["gateway", "plain"] {
        // One core for the server, the others for its clients.
        let mut server = Command::new("taskset")
            .args(["-c", "0"])
            .arg(&own)
            .args(["serve", kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut port = String::new();
        let stdout = server.stdout.take().ok_or("it was asked for")?;
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut port)?;
        let result = load(port.trim().parse()?, seconds);
        drop(server.stdin.take());
        server.wait()?;
        measured.push(result?);
    }
    let [(rate, latency), (plain_rate, plain_latency)] = measured[..] else {
        return Err("two servers were measured".into());
    };
    println!(
        "gateway with 50 KB bodies on one core: {rate:.0} turns/s, plain server: {plain_rate:.0}/s (target: 3,000)"
    );
    println!(
        "latency under that load: {:.2} ms, plain server: {:.2} ms, added {:.2} ms (target: 1)",
        latency.as_secs_f64() * 1000.0,
        plain_latency.as_secs_f64() * 1000.0,
        latency.saturating_sub(plain_latency).as_secs_f64() * 1000.0
    );
    Ok(())
}
