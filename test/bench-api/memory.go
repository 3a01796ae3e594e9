package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/garden"
)

const (
	// memoryLists is how often all objects are listed before the memory is read.
	memoryLists = 3
	// memoryAllowance is the memory that the API server may need in addition to kube-apiserver, in MiB.
	memoryAllowance = 150
	mebibyte        = 1 << 20
)

// measureMemory measures the memory of the servers with all objects, each side on its own control plane:
// kube-apiserver serves both, so the memory of one side cannot be separated from that of the other.
func (b *bench) measureMemory(ctx context.Context) error {
	b.say("memory of both servers with Shoots")
	both, err := b.memoryOfGarden(ctx)
	if err != nil {
		return err
	}
	b.say("memory of kube-apiserver with custom resources")
	alone, err := b.memoryOfControlPlane(ctx)
	if err != nil {
		return err
	}
	b.results.add(phase{name: "memory of the servers", unit: "MiB", allowance: memoryAllowance}, [2][]float64{{both}, {alone}})
	return nil
}

func (b *bench) memoryOfGarden(ctx context.Context) (_ float64, err error) {
	g, err := garden.Start(ctx, garden.Options{APIServer: b.options.Binary})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	s, err := prepareServed(ctx, g.Config())
	if err != nil {
		return 0, err
	}
	pid, err := serverOf(g.ControlPlane)
	if err != nil {
		return 0, err
	}
	return b.load(ctx, s, pid, g.PID())
}

func (b *bench) memoryOfControlPlane(ctx context.Context) (_ float64, err error) {
	// The API server sets the defaults of the other side's object, and runs only for that.
	g, err := garden.Start(ctx, garden.Options{APIServer: b.options.Binary})
	if err != nil {
		return 0, err
	}
	served, err := prepareServed(ctx, g.Config())
	if err := errors.Join(err, g.Stop()); err != nil {
		return 0, err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	if err := createNamespace(ctx, cp.Config()); err != nil {
		return 0, err
	}
	s, err := prepareCustom(ctx, cp.Config(), served)
	if err != nil {
		return 0, err
	}
	pid, err := serverOf(cp)
	if err != nil {
		return 0, err
	}
	return b.load(ctx, s, pid)
}

// load creates and lists all objects, and returns the memory of processes in MiB while all watchers watch.
func (b *bench) load(ctx context.Context, s *side, pids ...int) (float64, error) {
	if _, err := s.createMore(ctx, b.options.Writers, b.options.Shoots-s.created); err != nil {
		return 0, err
	}
	for range memoryLists {
		if _, err := s.list(ctx); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	version, err := s.resourceVersion(ctx)
	if err != nil {
		cancel()
		return 0, err
	}
	var reading errgroup.Group
	defer func() {
		cancel()
		_ = reading.Wait() // cancelled
	}()
	for range b.options.Watchers {
		stream, err := s.watch(ctx, version)
		if err != nil {
			return 0, err
		}
		reading.Go(func() error {
			defer stream.Close() //nolint:errcheck // only read
			_, err := io.Copy(io.Discard, stream)
			return err
		})
	}
	return residentMemory(pids...)
}

// residentMemory returns the total resident memory of processes in MiB.
func residentMemory(pids ...int) (float64, error) {
	total := 0
	for _, pid := range pids {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, fmt.Errorf("read the memory of a process: %w", err)
		}
		_, rest, _ := strings.Cut(string(content), "VmRSS:")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0, fmt.Errorf("read the memory of process %d: no VmRSS", pid)
		}
		kibibytes, err := strconv.Atoi(fields[0])
		if err != nil {
			return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
		}
		total += kibibytes << 10
	}
	return float64(total) / mebibyte, nil
}

// serverOf returns the process ID of the kube-apiserver of a control plane. It finds the process by the directory
// in its arguments.
func serverOf(cp *controlplane.ControlPlane) (int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		program, arguments, _ := strings.Cut(string(content), "\x00")
		if filepath.Base(program) == "kube-apiserver" && strings.Contains(arguments, cp.Dir()) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, errors.New("find the process of kube-apiserver: none has the directory of the control plane in its arguments")
}
