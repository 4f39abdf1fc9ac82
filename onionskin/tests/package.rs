//! What a package brings with it: the unit of systemd, manual pages and completions.
//!
//! The package itself is built, installed, run and removed by `make package-test`.

use onionskin_testkit::*;
use std::fs;
use std::process::{Command, Output};

const UNIT: &str = "packaging/onionskin.service";

fn onionskin(arguments: &[&str]) -> Output {
    let output = Command::new(onionskin_program()).args(arguments).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// systemd's own tools find neither a fault in the unit nor much that it leaves open.
#[test]
fn the_unit_is_right_and_closes_what_it_can() {
    let unit = fs::read_to_string(checkout().join(UNIT)).expect("the unit");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("onionskin.service");
    let program = onionskin_program().display().to_string();
    let verify = |unit: &str| {
        fs::write(&path, unit.replace("/usr/bin/onionskin", &program)).expect("written");
        let mut command = Command::new("systemd-analyze");
        // other services of the machine are not ours to judge
        command.args(["verify", "--man=no", "--recursive-errors=no"]);
        let output = command.arg(&path).output().expect("systemd-analyze");
        let told = text(&output.stderr);
        let of_ours = told.lines().filter(|line| line.contains("onionskin"));
        let of_ours: String = of_ours.collect();
        (output.status.success(), of_ours)
    };
    assert_eq!(verify(&unit), (true, String::new()));
    // it does find what is wrong
    let (_, told) = verify(&unit.replace("TasksMax", "TaskMax"));
    assert!(told.contains("TaskMax"), "{told}");

    let exposure = |unit: &str| {
        fs::write(&path, unit).expect("written");
        let mut command = Command::new("systemd-analyze");
        command.args(["security", "--offline=true", "--threshold=20", "--no-pager"]);
        let output = command.arg(&path).output().expect("systemd-analyze");
        (output.status.success(), text(&output.stdout))
    };
    let (is_low, told) = exposure(&unit);
    assert!(is_low, "{told}");
    let open: String = unit
        .lines()
        .filter(|l| !l.starts_with("SystemCall"))
        .collect();
    assert!(
        !exposure(&open).0,
        "a unit without filters of system calls passes"
    );
}

/// Every command has a manual page, and shells know it.
#[test]
fn commands_have_pages_and_completions() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = text(&onionskin(&["--help"]).stdout);
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .map_while(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    onionskin(&["man", &folder.path().display().to_string()]);
    let main = fs::read_to_string(folder.path().join("onionskin.1")).expect("a page");
    for command in &commands {
        let page = folder.path().join(format!("onionskin-{command}.1"));
        let page = fs::read_to_string(&page).expect(command);
        assert!(page.contains(".SH OPTIONS"), "{command}: {page}");
        // as pages write a hyphen that is no place for a line's end
        assert!(main.contains(&command.replace('-', "\\-")), "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&onionskin(&["completions", shell]).stdout);
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
        for hidden in ["man", "tied"] {
            let named = script
                .split(|letter: char| !letter.is_alphanumeric())
                .any(|word| word == hidden);
            assert!(!named, "{shell}: {hidden} is a hidden command");
        }
    }
}

/// bash takes the completions, and they complete.
#[test]
fn bash_completes_a_command() {
    let script = text(&onionskin(&["completions", "bash"]).stdout);
    let ask = "COMP_WORDS=(onionskin mig); COMP_CWORD=1; _onionskin onionskin mig onionskin; \
               printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["--norc", "-c", &format!("{script}\n{ask}")])
        .output()
        .expect("bash");
    assert_eq!(text(&output.stdout).trim(), "migrate", "{output:?}");
}
