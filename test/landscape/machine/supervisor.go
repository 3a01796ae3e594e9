package machine

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Pauses before a service that ended is restarted. Each pause is twice the previous one.
const (
	shortestPause = 200 * time.Millisecond
	longestPause  = 10 * time.Second
	// stable is how long a service has to run until the next pause is the shortest one again.
	stable = 30 * time.Second
	// poll is how often the addresses that a service waits for are probed.
	poll = 50 * time.Millisecond
)

// supervisor starts services as children of process 1, and reaps all processes that lost their parents.
type supervisor struct {
	out io.Writer
	now func() time.Time

	mutex sync.Mutex
	ended map[int]chan syscall.WaitStatus
}

func newSupervisor(out io.Writer, now func() time.Time) *supervisor {
	return &supervisor{out: out, now: now, ended: map[int]chan syscall.WaitStatus{}}
}

// run starts the services. It returns when the context ends.
func (s *supervisor) run(ctx context.Context, services []Service) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for _, service := range services {
		go s.supervise(ctx, service)
	}
	for {
		s.reap()
		select {
		case <-ctx.Done():
			return
		case <-children:
		}
	}
}

// reap collects all processes that have ended. No other code of this process waits for children.
func (s *supervisor) reap() {
	for {
		s.mutex.Lock() // a process that is being started is registered before it is reaped
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		ended, known := s.ended[pid]
		delete(s.ended, pid)
		s.mutex.Unlock()
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if known {
			ended <- status
		}
	}
}

func (s *supervisor) supervise(ctx context.Context, service Service) {
	for _, address := range service.After {
		s.await(ctx, address)
	}
	pause := shortestPause
	for ctx.Err() == nil {
		began := s.now()
		ended, pid, err := s.start(service)
		if err != nil {
			s.log("%s cannot be started: %v", service.Name, err)
		} else {
			s.log("%s started, process %d", service.Name, pid)
			status := <-ended
			s.log("%s ended after %s: %s", service.Name, s.now().Sub(began).Round(time.Millisecond), describe(status))
		}
		if s.now().Sub(began) > stable {
			pause = shortestPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

func (s *supervisor) start(service Service) (chan syscall.WaitStatus, int, error) {
	path := filepath.Join(State, "logs", service.Name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, 0, err
	}
	defer null.Close() //nolint:errcheck // the process has its own descriptor
	environment := append([]string{
		"PATH=" + Programs + ":" + Files + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp",
	}, service.Env...)

	s.mutex.Lock()
	defer s.mutex.Unlock()
	process, err := os.StartProcess(program(service.Args[0]), service.Args, &os.ProcAttr{
		Dir: "/", Env: environment, Files: []*os.File{null, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, 0, err
	}
	pid := process.Pid
	ended := make(chan syscall.WaitStatus, 1)
	s.ended[pid] = ended
	return ended, pid, process.Release()
}

func program(name string) string {
	path := filepath.Join(Programs, name)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(Files, name)
	}
	return path
}

// await returns when an address responds.
func (s *supervisor) await(ctx context.Context, address string) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !answers(ctx, address) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func answers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	network, rest, _ := strings.Cut(address, ":")
	if network == "unix" || network == "tcp" {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, rest)
		if err != nil {
			return false
		}
		return connection.Close() == nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	response, err := probe.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // only the status counts
	return response.StatusCode == http.StatusOK
}

// probe is the client that checks whether a service of this machine is ready. It reads only the status of the response.
var probe = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	DisableKeepAlives: true,
}}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

func (s *supervisor) log(format string, arguments ...any) {
	fmt.Fprintf(s.out, s.now().UTC().Format("15:04:05.000")+" "+format+"\n", arguments...)
}
