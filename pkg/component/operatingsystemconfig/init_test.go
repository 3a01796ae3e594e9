package operatingsystemconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// containerClient is a ctr whose images have a node agent that writes its arguments to a file. The first argument of the script is a directory.
const containerClient = `#!/bin/sh
echo "$*" >> DIRECTORY/calls
case "$1 $2" in
"--version ") echo "ctr github.com/containerd/containerd VERSION" ;;
"images pull") [ ! -e DIRECTORY/broken ] ;;
"images mount") printf '#!/bin/sh\necho "$*" > DIRECTORY/started\n' > "$4/gardener-node-agent" ;;
esac
`

// TestInitScript runs the script of a new machine: it installs the node agent from its image and starts its bootstrap.
func TestInitScript(t *testing.T) {
	config, _ := objects(t, valuesOf(t, func(*corev1beta1.Shoot) {}))[0].(*extensionsv1alpha1.OperatingSystemConfig)
	script := ""
	for _, file := range config.Spec.Files {
		if file.Path == paths.InitScript {
			script = file.Content.Inline.Data
		}
	}
	for version, pulls := range map[string]string{
		"1.7.1":  "images pull --hosts-dir /etc/containerd/certs.d registry.example.org/node-agent:v1",
		"v2.1.0": "images pull --hosts-dir /etc/containerd/certs.d --skip-metadata registry.example.org/node-agent:v1",
	} {
		directory := t.TempDir()
		client := strings.ReplaceAll(strings.ReplaceAll(containerClient, "DIRECTORY", directory), "VERSION", version)
		if err := os.WriteFile(filepath.Join(directory, "ctr"), []byte(client), 0o755); err != nil {
			t.Fatal(err)
		}
		run := func() ([]byte, error) {
			command := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(script, paths.Binaries, filepath.Join(directory, "bin")))
			command.Env = append(os.Environ(), "PATH="+directory+":"+os.Getenv("PATH"))
			return command.CombinedOutput()
		}
		if err := os.WriteFile(filepath.Join(directory, "broken"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := run(); err == nil {
			t.Errorf("%s: without an image, the script succeeds, and systemd does not repeat it", version)
		}
		if err := os.Remove(filepath.Join(directory, "broken")); err != nil {
			t.Fatal(err)
		}
		if output, err := run(); err != nil {
			t.Fatalf("%s: %v: %s", version, err, output)
		}
		started, err := os.ReadFile(filepath.Join(directory, "started"))
		if err != nil || string(started) != "bootstrap --config-dir=/var/lib/gardener-node-agent\n" {
			t.Errorf("%s: started with %q: %v", version, started, err)
		}
		calls, err := os.ReadFile(filepath.Join(directory, "calls"))
		if err != nil || !strings.Contains(string(calls), pulls+"\n") || strings.Count(string(calls), "images unmount ") != 2 {
			t.Errorf("%s: called %s: %v", version, calls, err)
		}
	}
}
