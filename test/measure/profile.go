package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Profiler takes profiles of a process that serves them beside its metrics, on 127.0.0.1.
type Profiler struct {
	// Profile is the directory for profiles. If it is empty, none are taken.
	Profile string

	metrics int
}

func (p *Profiler) metricsURL(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", p.metrics, path)
}

// ProfileCPU records a CPU profile in the background if profiles are requested. The returned function waits for
// it.
func (p *Profiler) ProfileCPU(ctx context.Context, name string, duration time.Duration) func() error {
	if p.Profile == "" {
		return func() error { return nil }
	}
	seconds := max(1, int(duration.Seconds()))
	result := make(chan error, 1)
	go func() {
		result <- p.saveProfile(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), name+"-cpu")
	}()
	return func() error { return <-result }
}

// ProfileMemory records the memory in use and the allocations since the start, if profiles are requested.
func (p *Profiler) ProfileMemory(ctx context.Context, name string) error {
	if p.Profile == "" {
		return nil
	}
	return errors.Join(
		p.saveProfile(ctx, "/debug/pprof/allocs", name+"-allocs"),
		p.saveProfile(ctx, "/debug/pprof/heap?gc=1", name+"-heap"),
	)
}

func (p *Profiler) saveProfile(ctx context.Context, path, name string) (err error) {
	if err := os.MkdirAll(p.Profile, 0o750); err != nil {
		return fmt.Errorf("create the directory of profiles: %w", err)
	}
	file, err := os.Create(filepath.Join(p.Profile, name+".pprof"))
	if err != nil {
		return fmt.Errorf("save a profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	if err := Fetch(ctx, p.metricsURL(path), buffered); err != nil {
		return fmt.Errorf("take a profile: %w", err)
	}
	return buffered.Flush()
}
