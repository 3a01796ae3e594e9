package machine

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// Paths in the machine's file system.
const (
	// State is the directory of the machine. Its subdirectory var is /var of the machine.
	State = "/run/landscape/state"
	// Programs is the directory with the programs of [Config.Programs]. It is a directory of the host, not one with a mount for each file:
	// runc makes a read-only copy of the directory that it is in, which would lack those.
	Programs = "/run/landscape/bin"
	// Files is the directory with the single files of [Config.Files].
	Files = "/run/landscape/files"
	// Images is the directory with an OCI layout. It is read-only.
	Images = "/run/landscape/images"
)

// Config describes a machine.
type Config struct {
	// Name is the name of its cgroups, and of its network device on the host; at most 15 characters.
	Name string `json:"name"`
	// Hostname is the name that the machine sees.
	Hostname string `json:"hostname"`
	// Directory is the directory on the host that becomes [State].
	Directory string `json:"directory"`
	// Images is the directory on the host that becomes [Images].
	Images string `json:"images"`
	// Programs is the directory on the host that becomes [Programs].
	Programs string `json:"programs"`
	// Files are the paths of files on the host, by their names in [Files].
	Files map[string]string `json:"files"`
	// Host and Machine are the addresses of both ends of the link between host and machine.
	Host    netip.Prefix `json:"host"`
	Machine netip.Prefix `json:"machine"`
	// Routes are networks that the host reaches through the machine.
	Routes []netip.Prefix `json:"routes"`
	// Services are started in this order. Each starts as soon as the addresses that it waits for respond.
	Services []Service `json:"services"`
}

// Service is a process that runs as long as the machine. It is restarted when it ends.
type Service struct {
	Name string   `json:"name"`
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"`
	// After are addresses that have to respond before the service starts: "unix:/path", "tcp:host:port", or a URL that has to
	// respond with 200.
	After []string `json:"after,omitempty"`
}

const configFile = "machine.json"

// Write writes the configuration to its place below the directory of the machine.
func (c *Config) Write() error {
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the configuration of the machine: %w", err)
	}
	return os.WriteFile(filepath.Join(c.Directory, configFile), content, 0o600)
}

// Read reads the configuration of the machine in a directory.
func Read(directory string) (*Config, error) {
	content, err := os.ReadFile(filepath.Join(directory, configFile))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the machine: %w", err)
	}
	c := &Config{}
	if err := json.Unmarshal(content, c); err != nil {
		return nil, fmt.Errorf("reading the configuration of the machine: %w", err)
	}
	return c, nil
}
