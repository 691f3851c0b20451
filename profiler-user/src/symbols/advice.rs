//! What to do about an object without names.

use std::fs;
use std::path::Path;

use super::NoName;
use crate::processes::{Object, Runtime};

/// What advice depends on, besides the object.
pub(super) struct Host {
    /// Name of the distribution in `os-release(5)`, and of those it is like.
    distribution: String,
    /// Whether debuginfod servers were asked.
    asked_servers: bool,
}

/// Whose an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Distribution,
    Rustup,
    User,
}

impl Host {
    /// This host.
    pub(super) fn read(asked_servers: bool) -> Self {
        Self { distribution: fs::read_to_string("/etc/os-release").unwrap_or_default(), asked_servers }
    }

    /// Why the object has no names, and what helps.
    pub(super) fn describe(&self, why: &NoName, object: &Object) -> String {
        match why {
            NoName::NoSymbols => format!("stripped of all symbols; {}", self.remedy(object)),
            NoName::ExportsOnly => {
                format!("stripped: only functions that it exports have names; {}", self.remedy(object))
            }
            NoName::NotCovered => {
                "some of its code has no symbol (assembly, or stubs that the linker made)".into()
            }
            NoName::Unreadable(why) => why.describe().into(),
            NoName::Failed(error) => format!("no names, because of its file: {error}"),
            NoName::NoPerfMap(_) | NoName::NotInPerfMap(_) => without_names(why),
        }
    }

    fn remedy(&self, object: &Object) -> String {
        let nothing_there = if self.asked_servers { "the debuginfod servers have none; " } else { "" };
        match origin(&object.path) {
            Origin::Rustup => "rustup ships it so, and has no debug information for it".into(),
            Origin::User => format!(
                "{nothing_there}build it with debug information and do not strip it (Cargo.toml: debug = 1 and strip = false in the profile; C: -g, not -s)"
            ),
            Origin::Distribution => {
                let package =
                    if self.is_like("debian") { "its -dbgsym package" } else { "its debug package" };
                match self.server().filter(|_| !self.asked_servers && object.build_id.is_some()) {
                    Some(server) => format!(
                        "install {package}, or set DEBUGINFOD_URLS={server} (sudo --preserve-env=DEBUGINFOD_URLS)"
                    ),
                    None => format!("{nothing_there}install {package}"),
                }
            }
        }
    }

    /// The public debuginfod server of this distribution (<https://sourceware.org/elfutils/Debuginfod.html>).
    fn server(&self) -> Option<&'static str> {
        let servers = [
            ("ubuntu", "https://debuginfod.ubuntu.com"),
            ("debian", "https://debuginfod.debian.net"),
            ("fedora", "https://debuginfod.fedoraproject.org"),
            ("arch", "https://debuginfod.archlinux.org"),
            ("suse", "https://debuginfod.opensuse.org"),
        ];
        servers.into_iter().find(|(name, _)| self.is_like(name)).map(|(_, server)| server)
    }

    fn is_like(&self, name: &str) -> bool {
        let lines = self.distribution.lines().filter_map(|line| line.split_once('='));
        let mut names = lines.filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"));
        names.any(|(_, value)| value.trim_matches('"').split_whitespace().any(|word| word == name))
    }
}

/// Why code that was made at run time has no names, and what helps.
pub(super) fn without_names(why: &NoName) -> String {
    match why {
        NoName::NoPerfMap(runtime) => format!("code made at run time without names; {}", names_of(*runtime)),
        NoName::NotInPerfMap(Runtime::Node) => {
            "its program writes names, but none for this code: bytecode has names with --interpreted-frames-native-stack".into()
        }
        _ => "its program writes names of code made at run time, but none for this code".into(),
    }
}

/// How a runtime is made to write names.
fn names_of(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Node => "start it with --perf-basic-prof (NODE_OPTIONS=--perf-basic-prof)",
        Runtime::Java => {
            "start it with -XX:+PreserveFramePointer, and call `jcmd PID Compiler.perfmap` while it runs (JDK 17), or add -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"
        }
        Runtime::Python => "start it with -X perf (Python 3.12; PYTHONPERFSUPPORT=1)",
        Runtime::DotNet => "start it with DOTNET_PerfMapEnabled=1",
        Runtime::Wasmtime => "start it with --profile=jitdump or --profile=perfmap",
        Runtime::LuaJit => "build LuaJIT with -DLUAJIT_USE_PERFTOOLS",
        Runtime::Ruby => "start it with --yjit-perf (Ruby 3.3)",
        Runtime::Php => "set opcache.jit_debug=0x10",
        Runtime::Erlang => "start it with +JPperf true",
        Runtime::Julia => "start it with ENABLE_JITPROFILING=1",
        Runtime::Other => {
            "start its program so that it writes /tmp/perf-PID.map or a jitdump file (for example node --perf-basic-prof, python3 -X perf)"
        }
    }
}

fn origin(path: &Path) -> Origin {
    let has = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
    if has("toolchains") && (has(".rustup") || has("rustup")) {
        return Origin::Rustup;
    }
    let installed = ["/usr", "/lib", "/lib64", "/bin", "/sbin"].iter().any(|folder| path.starts_with(folder));
    if installed && !path.starts_with("/usr/local") { Origin::Distribution } else { Origin::User }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(os_release: &str, asked_servers: bool) -> Host {
        Host { distribution: os_release.into(), asked_servers }
    }

    fn described(host: &Host, path: &str, why: &NoName) -> String {
        host.describe(why, &Object::named(path, crate::kernel::BuildId::new(&[1; 20])))
    }

    #[test]
    fn the_remedy_fits_whose_object_it_is() {
        let debian = host("NAME=x\nID=debian\n", false);
        let libc = described(&debian, "/usr/lib/x86_64-linux-gnu/libc.so.6", &NoName::ExportsOnly);
        assert!(libc.contains("-dbgsym") && libc.contains("https://debuginfod.debian.net"), "{libc}");
        let own = described(&debian, "/home/me/target/release/app", &NoName::NoSymbols);
        assert!(own.contains("debug = 1") && !own.contains("dbgsym"), "{own}");
        let rustup = described(
            &debian,
            "/home/me/.rustup/toolchains/x/lib/librustc_driver-1.so",
            &NoName::ExportsOnly,
        );
        assert!(rustup.contains("rustup ships it"), "{rustup}");
        let local = described(&debian, "/usr/local/bin/app", &NoName::NoSymbols);
        assert!(local.contains("debug = 1"), "{local}");
    }

    #[test]
    fn servers_that_were_asked_are_not_proposed_again() {
        let asked = host("ID=mint\nID_LIKE=\"ubuntu debian\"\n", true);
        let text = described(&asked, "/usr/bin/tool", &NoName::NoSymbols);
        assert!(text.contains("servers have none") && !text.contains("DEBUGINFOD_URLS"), "{text}");
        let not_asked = host("ID=mint\nID_LIKE=\"ubuntu debian\"\n", false);
        assert!(described(&not_asked, "/usr/bin/tool", &NoName::NoSymbols).contains("debuginfod.ubuntu.com"));
        let unknown = host("", false);
        assert!(!described(&unknown, "/usr/bin/tool", &NoName::NoSymbols).contains("DEBUGINFOD_URLS"));
    }
}
