package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-k8s/trellis/test/controlplane"
)

const (
	serveCommand   = "serve"
	servingMessage = "serving"
	// progressDescriptor is the first of exec.Cmd.ExtraFiles.
	progressDescriptor = 3

	nodes        = 3
	readyTimeout = 3 * time.Minute
)

// serve runs in the background process. It runs the clusters and all programs until it receives a signal or one of them ends. Its parent reads
// the progress. If the parent exits early, writing the progress fails and everything is stopped.
func (d *demo) serve(ctx context.Context, progress io.WriteCloser) (err error) {
	pidFile, err := d.lock()
	if err != nil {
		return err
	}
	defer pidFile.Close() //nolint:errcheck // this ends the lock, the content is written

	const starting = "Starting Kubernetes with %d simulated nodes, this takes about 5 seconds (a minute on a busy machine).\n"
	if _, err := fmt.Fprintf(progress, starting, nodes); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}
	options := controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: nodes, Dir: d.dir, Log: progress}
	if d.controlPlaneOnly {
		cp, err := controlplane.Start(ctx, options)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cp.Stop()) }()
		return d.hold(ctx, progress, nil, nil)
	}
	// The control planes of Shoots end before the clusters do.
	running, cancel := context.WithCancel(ctx)
	f, err := d.startFleet(running, options, progress)
	defer func() { err = errors.Join(err, f.stop()) }()
	defer cancel()
	if err != nil {
		return err
	}
	return d.hold(ctx, progress, f.processes, f.ended)
}

// hold reports that everything runs, and waits until the context or one of the processes ends, or something else fails.
func (d *demo) hold(ctx context.Context, progress io.WriteCloser, processes []*controlplane.Process, failed <-chan error) error {
	_, err := fmt.Fprintln(progress, servingMessage)
	if err := errors.Join(err, progress.Close()); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}
	ended := make(chan *controlplane.Process, len(processes))
	for _, process := range processes {
		go func() {
			<-process.Done()
			ended <- process
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case process := <-ended:
		return process.Err()
	case err := <-failed:
		return err
	}
}

// program returns the path of a program: one that a test has built, or that of `make build` and `make controlplane`.
func (d *demo) program(name string) string {
	if path, built := d.built[name]; built {
		return path
	}
	return filepath.Join(d.root, "bin", name)
}

// awaitReady polls a URL until it responds with status 200. It returns early if the process ends.
func awaitReady(ctx context.Context, process *controlplane.Process, program, url string) error {
	last := errors.New("no response")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := process.Err(); err != nil {
			return false, err
		}
		last = get(ctx, url)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the %s to become ready: %w", program, errors.Join(err, last))
	}
	return nil
}

func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
