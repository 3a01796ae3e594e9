// Package units has the systemd units of the node agent. The OperatingSystemConfig contains them, and the command bootstrap writes them on a new
// machine.
package units

import (
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// Agent returns the unit of the node agent. If the program ends repeatedly, shortly after its start, systemd starts the unit Fallback.
// Network outages do not end it.
func Agent() string {
	return `[Unit]
Description=Node agent: applies the configuration of this node.
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=120
StartLimitBurst=10
OnFailure=` + paths.FallbackUnit + `

[Service]
LimitMEMLOCK=infinity
ExecStart=` + paths.Agent + ` --config-dir=` + paths.Base + `
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
`
}

// Fallback returns the unit that puts the previous program of the node agent back, if there is one, and starts the node agent again. The node agent
// does not install the refused program a second time.
func Fallback() string {
	return `[Unit]
Description=Puts the previous node agent back.
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'if [ -f ` + paths.Previous + ` ]; then mv -f ` + paths.Agent + ` ` + paths.Refused + `; mv -f ` + paths.Previous + ` ` + paths.Agent + `; fi'
ExecStart=/bin/sh -c 'systemctl reset-failed ` + paths.AgentUnit + `; systemctl start --no-block ` + paths.AgentUnit + `'
`
}
