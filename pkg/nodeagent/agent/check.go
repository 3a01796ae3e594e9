package agent

import (
	"context"
	"strings"
	"time"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/identity"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
)

// checkTimeout limits how long the check of a new program may take.
const checkTimeout = time.Minute

// Check returns an error if this program cannot run on this machine: it reads its configuration, its certificate and its Secret. It changes nothing.
func Check(ctx context.Context, options Options) error {
	config, err := options.Load()
	if err != nil {
		return err
	}
	files := identity.Files{Files: options.Files, Config: config}
	connection, err := files.Own(options.Clock.Now())
	if err != nil {
		return err
	}
	client, err := cluster.New(connection)
	if err != nil {
		return err
	}
	defer client.Close()
	hostname, err := options.Hostname()
	if err != nil {
		return err
	}
	secret, err := client.Secret(ctx, config.Controllers.OperatingSystemConfig.SecretName)
	if err != nil {
		return err
	}
	_, err = osc.Decode(secret.Data[osc.Key], strings.ToLower(hostname))
	return err
}

// CheckProgram returns a function that lets a program check itself. args say where the configuration is.
func CheckProgram(commands host.Commands, args ...string) func(ctx context.Context, program string) error {
	return func(ctx context.Context, program string) error {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		_, err := commands.Run(ctx, program, append([]string{"check"}, args...)...)
		return err
	}
}
