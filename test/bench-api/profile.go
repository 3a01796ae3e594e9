package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// profileSeconds is the duration of a profile. It starts with the phase.
const profileSeconds = "10"

// profiler takes CPU profiles of servers, unless its directory is empty.
type profiler struct {
	directory string
	servers   map[string]*rest.Config
}

// profiling is a profile in progress.
type profiling struct{ group *errgroup.Group }

// begin starts a profile of all servers.
func (p profiler) begin(ctx context.Context, name string) profiling {
	group := &errgroup.Group{}
	if p.directory == "" {
		return profiling{group}
	}
	for server, config := range p.servers {
		group.Go(func() error {
			c, err := discovery.NewDiscoveryClientForConfig(config)
			if err != nil {
				return err
			}
			content, err := c.RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", profileSeconds).Do(ctx).Raw()
			if err != nil {
				return fmt.Errorf("profile %s: %w", server, err)
			}
			file := strings.NewReplacer(" ", "-", ",", "").Replace(name) + "-" + server + ".pprof"
			return errors.Join(os.MkdirAll(p.directory, 0o700), os.WriteFile(filepath.Join(p.directory, file), content, 0o600))
		})
	}
	return profiling{group}
}

func (p profiling) end() error { return p.group.Wait() }
