package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"golang.org/x/sync/errgroup"
)

// maxEvent is the maximum size of an event in bytes. A larger event is an error.
const maxEvent = 4 << 20

// fanOut changes objects while many clients watch all of them, and returns the time from the first change until
// every client has received every event.
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
		reading.Go(func() error { return s.follow(ctx, stream, version, changes) })
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

// watch starts a watch with its own connection. It returns when the server has accepted the watch.
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
		return nil, fmt.Errorf("start a watch: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("start a watch: %s", response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// eventVersion finds the resourceVersion of the object in an event. The metadata precede all other fields that can
// have one.
var eventVersion = regexp.MustCompile(`"resourceVersion":"(\d+)"`)

// follow reads a number of events from a watch that started at a version. An API server ends the watches of slow
// clients. These resume with a new watch where the last one ended.
func (s *side) follow(ctx context.Context, stream io.ReadCloser, version string, events int) error {
	for {
		seen, last, err := readEvents(stream, events)
		if err := errors.Join(err, stream.Close()); err != nil {
			return err
		}
		if events -= seen; events == 0 {
			return nil
		}
		if found := eventVersion.FindSubmatch(last); found != nil {
			version = string(found[1])
		}
		if stream, err = s.watch(ctx, version); err != nil {
			return err
		}
	}
}

// readEvents reads up to a number of events, until the stream ends. It returns the number of events and the last
// one. API servers end every event with a line break, and events contain no others.
func readEvents(stream io.Reader, most int) (seen int, last []byte, err error) {
	lines := bufio.NewScanner(stream)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	for seen < most && lines.Scan() {
		seen, last = seen+1, append(last[:0], lines.Bytes()...)
	}
	return seen, last, lines.Err()
}

// concurrently calls a function with 0 to count-1, in a number of workers.
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
