package app

import (
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/trellis-k8s/trellis/pkg/provider/local/bastion/server"
)

// portSSH is the only port to which a bastion forwards connections.
const portSSH = 22

func newBastionCommand() *cobra.Command {
	var keysFile, listen string
	command := &cobra.Command{
		Use:     "bastion --authorized-keys FILE",
		Short:   "Run the SSH server of a bastion",
		Long:    "bastion lets users with an authorized key connect to port 22 of other hosts. It runs no programs.",
		Example: "  provider-local bastion --authorized-keys /etc/bastion/authorized_keys --listen :2222",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			text, err := os.ReadFile(keysFile)
			if err != nil {
				return fmt.Errorf("read the authorized keys: %w", err)
			}
			keys, err := server.ParseKeys(text)
			if err != nil {
				return err
			}
			listener, err := (&net.ListenConfig{}).Listen(command.Context(), "tcp", listen)
			if err != nil {
				return err
			}
			return (&server.Server{Keys: keys, Ports: []uint32{portSSH}}).Serve(command.Context(), listener)
		},
	}
	command.Flags().StringVar(&keysFile, "authorized-keys", "", "file with the public keys that may log in")
	command.Flags().StringVar(&listen, "listen", ":2222", "address to listen on")
	_ = command.MarkFlagRequired("authorized-keys") // the flag exists
	return command
}
