package etcdbackup

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	etcdmember "github.com/trellis-k8s/trellis/cmd/etcd-member/app"
	"github.com/trellis-k8s/trellis/pkg/etcd/snapshot"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/pages"
)

// TestDisasterRecoveryGuide runs the commands of the guide in docs/backup.md, and checks the restored content. It also merges and copies
// the backups.
func TestDisasterRecoveryGuide(t *testing.T) {
	program, err := controlplane.BuildProgram[etcdmember.Program]()
	kit.Must(t, err)
	directory := t.TempDir()
	path := filepath.Join(directory, "bin")
	kit.Must(t, os.Mkdir(path, 0o700))
	kit.Must(t, os.Symlink(program, filepath.Join(path, "etcd-member")))
	e := start(t, filepath.Join(directory, "data"))
	s := newStore(t)
	random := rand.New(rand.NewPCG(7, 8))
	taker := e.takeBackups(s, "c1", nil)
	taker.stored(t, e.change(random, 30))
	last := e.change(random, 30)
	taker.stored(t, last)
	taker.stop()
	kit.Must(t, os.Mkdir(filepath.Join(directory, "backups"), 0o700))
	kit.Must(t, os.Symlink(s.directory, filepath.Join(directory, "backups", "bucket")))

	shell := pages.Shell{Directory: directory, Path: path}
	run := func(lines ...string) string {
		for i := range lines {
			lines[i] = strings.NewReplacer(" /backups", " "+directory+"/backups", " /restored", " "+directory+"/restored").Replace(lines[i])
		}
		return shell.Run(t, lines)
	}
	var output strings.Builder
	for _, block := range pages.Blocks(t, "docs/backup.md") {
		var lines []string
		for _, command := range block.Commands {
			if !strings.HasPrefix(command, "etcd ") { // it runs until it is stopped
				lines = append(lines, command)
			}
		}
		output.WriteString(run(lines...))
	}
	for _, wanted := range []string{"EPOCH 1 of cluster c1", `"complete": true`, "Restored the revision"} {
		if !strings.Contains(output.String(), wanted) {
			t.Errorf("the output of the guide does not contain %q:\n%s", wanted, &output)
		}
	}
	restored := start(t, filepath.Join(directory, "restored"))
	answer, err := restored.Get(t.Context(), "x")
	kit.Must(t, err)
	if answer.Header.Revision != last+snapshot.RevisionBump {
		t.Errorf("the revision is %d after %d", answer.Header.Revision, last)
	}
	got, want := restored.content(0), e.content(last)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q instead of %q", key, got[key], value)
		}
	}

	// A merged snapshot replaces the changes before it. The copy is complete.
	const at = "--provider local --directory /backups --bucket bucket --prefix entry/etcd-main"
	run("etcd-member compact "+at+" --temporary-directory "+directory,
		"mkdir backups/copy",
		"etcd-member copy --source-provider local --source-directory /backups --source-bucket bucket --source-prefix entry/etcd-main "+
			"--max-backups 1 --provider local --directory /backups --bucket copy --prefix entry/etcd-main",
		"etcd-member verify --provider local --directory /backups --bucket copy --prefix entry/etcd-main")
	copied := &store{T: t, directory: filepath.Join(directory, "backups", "copy")}
	if objects := copied.objects(); len(objects) != 1 || objects[0].Last != last {
		t.Errorf("the copy has %+v", objects)
	}
	copied.restore(e, last)
}
