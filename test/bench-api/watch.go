package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// fanOut changes objects while many clients watch all of them, and returns the time from the first change until every
// client has every event.
func (s *side) fanOut(ctx context.Context, watchers, changes, writers int, value string) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	version, err := s.resourceVersion(ctx)
	if err != nil {
		return 0, err
	}
	var reading errgroup.Group
	for range watchers {
		stream, err := s.watch(ctx, version)
		if err != nil {
			return 0, err
		}
		reading.Go(func() error {
			defer stream.Close() //nolint:errcheck // only read
			return readLines(stream, changes)
		})
	}
	start := time.Now()
	if err := concurrently(ctx, min(writers, changes), changes, func(ctx context.Context, index int) error {
		return s.label(ctx, index, value)
	}); err != nil {
		cancel()
		return 0, errors.Join(err, reading.Wait())
	}
	if err := reading.Wait(); err != nil {
		return 0, fmt.Errorf("watch %s: %w", s.path, err)
	}
	return time.Since(start), nil
}

// watch begins a watch with a connection of its own. It returns when the server has accepted it.
func (s *side) watch(ctx context.Context, version string) (io.ReadCloser, error) {
	client, err := s.connection()
	if err != nil {
		return nil, fmt.Errorf("connect a watcher: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.path+"?watch=true&resourceVersion="+version, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("begin a watch: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("begin a watch: %s", response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// readLines reads until it has seen a number of lines. API servers end every event of a watch with a line break, and have none in it.
func readLines(stream io.Reader, lines int) error {
	buffer := make([]byte, 64<<10)
	for lines > 0 {
		read, err := stream.Read(buffer)
		lines -= bytes.Count(buffer[:read], []byte{'\n'})
		if err != nil && lines > 0 {
			return fmt.Errorf("%d events are missing: %w", lines, err)
		}
	}
	return nil
}

// concurrently calls a function with 0 to count-1, by a number of workers.
func concurrently(ctx context.Context, workers, count int, call func(ctx context.Context, index int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for index := range count {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return call(ctx, index) })
	}
	return group.Wait()
}
