package operatingsystemconfig

import (
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/units"
)

// Placeholders in user data, which the machine layer replaces for each machine.
const (
	PlaceholderToken   = "<<BOOTSTRAP_TOKEN>>" //nolint:gosec // a placeholder
	PlaceholderMachine = "<<MACHINE_NAME>>"
)

// nodeInit installs the node agent on a new machine and lets it bootstrap itself. The program is in an image, because user data is
// limited to 16 KiB on some infrastructures.
func nodeInit(values Values) (content, error) {
	// The unit is repeated until the node agent disables it.
	unit := `[Unit]
Description=Installs the node agent.
Requires=containerd.service
After=containerd.service network-online.target
Wants=network-online.target

[Service]
Type=oneshot
Restart=on-failure
RestartSec=5
StartLimitBurst=0
EnvironmentFile=/etc/environment
ExecStart=` + paths.InitScript + `

[Install]
WantedBy=multi-user.target
`
	// The directory of the image is unmounted also if the script fails. Before version 2, ctr does not know --skip-metadata.
	script := `#!/bin/bash
set -o errexit -o nounset -o pipefail

image="` + values.Images.NodeAgent + `"
mounted="$(mktemp -d)"
cleanup() {
  ctr images unmount "$mounted" || true
  rm -rf "$mounted"
}
trap cleanup EXIT

options=()
if [[ "$(ctr --version | grep -oE '[0-9]+' | head -n 1)" -gt 1 ]]; then
  options=(--skip-metadata)
fi
echo "pull $image"
ctr images pull --hosts-dir /etc/containerd/certs.d "${options[@]}" "$image"
ctr images mount "$image" "$mounted"

mkdir -p /opt/bin
program="$mounted/gardener-node-agent"
[[ -f "$program" ]] || program="$mounted/ko-app/gardener-node-agent"
cp -f "$program" ` + paths.Agent + `.new
chmod +x ` + paths.Agent + `.new
mv -f ` + paths.Agent + `.new ` + paths.Agent + `

cleanup
trap - EXIT
exec ` + paths.Agent + ` bootstrap --config-dir=` + paths.Base + `
`
	unencoded := func(file extensionsv1alpha1.File) extensionsv1alpha1.File {
		file.Content.TransmitUnencoded = ptr.To(true)
		return file
	}
	return content{
		units: []extensionsv1alpha1.Unit{startedUnit(paths.InitUnit, unit, paths.InitScript)},
		files: append([]extensionsv1alpha1.File{
			unencoded(textFile(paths.BootstrapToken, modeShared, PlaceholderToken)),
			unencoded(textFile(paths.MachineName, modeShared, PlaceholderMachine)),
			textFile(paths.InitScript, modeProgram, script),
		}, nodeAgentFiles(values)...),
	}, nil
}

// nodeAgent keeps the node agent up to date.
func nodeAgent(values Values) (content, error) {
	fallback := extensionsv1alpha1.Unit{
		Name: paths.FallbackUnit, Command: ptr.To(extensionsv1alpha1.CommandStop), Enable: ptr.To(false), Content: ptr.To(units.Fallback()),
	}
	return content{
		units: []extensionsv1alpha1.Unit{startedUnit(paths.AgentUnit, units.Agent(), nodeAgentConfig(values), paths.Agent), fallback},
		files: append(nodeAgentFiles(values), programFile(paths.Agent, values.Images.NodeAgent, "/gardener-node-agent")),
	}, nil
}

// nodeAgentConfig returns the path of the configuration. It contains the version of the program, so that a program reads only a
// configuration that was written for it.
func nodeAgentConfig(values Values) string {
	return paths.Base + "/config-" + values.NodeAgentVersion + ".yaml"
}

func nodeAgentFiles(values Values) []extensionsv1alpha1.File {
	return []extensionsv1alpha1.File{
		textFile(nodeAgentConfig(values), modeSecret, values.NodeAgent),
		textFile(paths.ClusterCA, modeShared, values.CABundle),
	}
}
