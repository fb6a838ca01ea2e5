//! Repositories that were copied or moved: what is recorded of the hooks names the other one.
use super::*;

fn shell(scratch: &Scratch, text: &str) {
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let ran = shell
        .current_dir(scratch.path())
        .args(["-ec", text])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{text}: {said}");
}

/// The copy's hooks go, and those of the original stay to the byte; each as git runs them.
#[test]
fn an_uninstallation_in_a_copy_leaves_the_original_alone() {
    for made in [false, true] {
        for how in ["cp -a repo other", "mv repo other && cp -a other repo"] {
            let scratch = Scratch::new(PROGRAM);
            if made {
                fs::remove_dir_all(hooks_folder(&scratch)).unwrap();
            }
            scratch.takeup(&["hooks", "install"]).exits(0);
            shell(&scratch, how);
            let original = whole(&hooks_folder(&scratch));
            let other = scratch.path().join("other");
            let answer = scratch
                .takeup_in(&other, &["hooks", "uninstall", "--json"])
                .exits(0)
                .json();
            assert_eq!(whole(&hooks_folder(&scratch)), original, "{how}");
            assert_eq!(other.join(".git/hooks").exists(), !made, "{how}");
            assert!(!other.join(".git/hooks/post-commit").exists(), "{how}");
            for hook in answer["data"]["hooks"].as_array().unwrap() {
                assert_eq!(hook["outcome"], "taken", "{hook}");
            }
            let note = answer["data"]["notes"][0].as_str().unwrap();
            assert!(note.contains("repo/.git/hooks stay"), "{note}");
            scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
            assert_eq!(settled(&scratch.repo()).observations.len(), 1);
        }
    }
}

/// What a killed installation left beside the hooks of another repository is that one's.
#[test]
fn the_doctor_of_a_copy_looks_at_its_own_hooks() {
    let scratch = installed();
    shell(&scratch, "cp -a repo other");
    let left = hooks_folder(&scratch).join(".takeup-tmp-left");
    fs::write(&left, "").unwrap();
    let two_hours_ago = std::time::SystemTime::now() - Duration::from_hours(2);
    let file = fs::File::options().write(true).open(&left).unwrap();
    file.set_modified(two_hours_ago).unwrap();
    let other = scratch.path().join("other");
    scratch.takeup_in(&other, &["doctor", "--fix", "--yes"]);
    assert!(left.exists());
    scratch.takeup(&["doctor", "--fix", "--yes"]);
    assert!(!left.exists());
}
