package operatingsystemconfig

import (
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// sshd starts the SSH server of a node, or stops and masks it if the Shoot does not accept SSH connections. The operating system
// may change its state, so the unit checks it repeatedly.
func sshd(values Values) (content, error) {
	const script = "/var/lib/sshd-ensurer/run.sh"
	do := `  if systemctl is-enabled --quiet sshd.service 2>/dev/null || systemctl is-active --quiet sshd.service; then
    systemctl disable --now sshd.service || true
    systemctl mask sshd.service
  fi
  # Connections that exist are ended, too.
  pkill -x sshd || true
`
	if values.SSHKeys != "" {
		do = `  if [[ "$(systemctl is-enabled sshd.service 2>/dev/null)" == masked* ]]; then
    systemctl unmask sshd.service
  fi
  systemctl is-enabled --quiet sshd.service || systemctl enable sshd.service
  systemctl is-active --quiet sshd.service || systemctl start sshd.service
`
	}
	text := `#!/bin/bash
set -o nounset

while true; do
` + do + `  sleep 15
done
`
	// The loop has nothing to finish. Without the limit, a restart took the default of 90 seconds on one of two nodes, and the node agent waited.
	unit := `[Unit]
Description=Ensures whether the SSH server of this node runs.
DefaultDependencies=no

[Service]
Type=simple
Restart=always
RestartSec=15
TimeoutStopSec=5
ExecStart=` + script + `

[Install]
WantedBy=multi-user.target
`
	return content{
		units: []extensionsv1alpha1.Unit{startedUnit("sshd-ensurer.service", unit, script)},
		files: []extensionsv1alpha1.File{textFile(script, modeProgram, text)},
	}, nil
}

// user creates the user with which operators connect to nodes, and follows changes of its keys.
func user(values Values) (content, error) {
	if values.SSHKeys == "" {
		return content{}, nil
	}
	const script, keys = "/var/lib/gardener-user/run.sh", "/var/lib/gardener-user-authorized-keys"
	text := `#!/bin/bash
set -o errexit -o nounset

user=gardener
home=/home/$user
id "$user" >/dev/null 2>&1 || useradd --create-home --home-dir "$home" --shell /bin/bash "$user"
install -d -m 0700 -o "$user" "$home/.ssh"
install -m 0600 -o "$user" ` + keys + ` "$home/.ssh/authorized_keys"
mkdir -p /etc/sudoers.d
echo "$user ALL=(ALL) NOPASSWD:ALL" >/etc/sudoers.d/99-gardener-user.new
chmod 0440 /etc/sudoers.d/99-gardener-user.new
mv -f /etc/sudoers.d/99-gardener-user.new /etc/sudoers.d/99-gardener-user
`
	service := `[Unit]
Description=Ensures the user for operators and its keys.

[Service]
Type=oneshot
ExecStart=` + script + `
`
	path := `[Path]
PathChanged=` + keys + `

[Install]
WantedBy=multi-user.target
`
	start := startedUnit("gardener-user.service", service, script, keys)
	return content{
		units: []extensionsv1alpha1.Unit{start, startedUnit("gardener-user.path", path)},
		files: []extensionsv1alpha1.File{textFile(script, modeProgram, text), textFile(keys, modeFile, joinPEM(values.SSHKeys))},
	}, nil
}
