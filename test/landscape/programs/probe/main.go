// Command probe runs in the containers of tests. It serves and requests over HTTP, TCP and UDP, resolves names, and reads
// and writes files.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const timeout = 3 * time.Second

func main() { os.Exit(runMain()) }

func runMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("usage: probe serve|udp|get|wait|ask|api|extend|lookup|write|read|env|exit|sleep [argument...]")
	}
	argument := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	switch args[0] {
	case "serve":
		return serve(ctx, args[1:], out)
	case "udp":
		return udp(ctx, argument(1))
	case "get":
		return get(ctx, argument(1), out)
	case "wait":
		return wait(ctx, argument(1))
	case "ask":
		return ask(ctx, argument(1), out)
	case "api":
		return api(ctx, argument(1), out)
	case "extend":
		return extend(ctx, argument(1), argument(2))
	case "lookup":
		addresses, err := net.DefaultResolver.LookupHost(ctx, argument(1))
		fmt.Fprintln(out, strings.Join(addresses, " "))
		return err
	case "write":
		return os.WriteFile(argument(1), []byte(argument(2)), 0o644) //nolint:gosec // a file of a test
	case "read":
		content, err := os.ReadFile(argument(1))
		fmt.Fprintln(out, string(content))
		return err
	case "env":
		fmt.Fprintln(out, strings.Join(os.Environ(), "\n"))
		return nil
	case "exit":
		return errors.New("exiting with an error as requested")
	case "sleep":
		<-ctx.Done()
		return nil
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
}

// serve responds with the name of the host and the address of the caller, on several addresses.
func serve(ctx context.Context, addresses []string, out io.Writer) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	failed := make(chan error, len(addresses))
	for _, address := range addresses {
		server := &http.Server{Addr: address, ReadHeaderTimeout: timeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "hello from %s to %s\n", host, r.RemoteAddr)
			fmt.Fprintln(out, r.Method, r.URL.Path)
		})}
		fmt.Fprintln(out, "serving on", address)
		go func() { failed <- server.ListenAndServe() }()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// udp echoes every packet.
func udp(ctx context.Context, address string) error {
	connection, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", address)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = connection.Close() })
	buffer := make([]byte, 1500)
	for {
		n, from, err := connection.ReadFrom(buffer)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err != nil {
			return nil //nolint:nilerr // the context has ended
		}
		if _, err := connection.WriteTo(buffer[:n], from); err != nil {
			return err
		}
	}
}

// ask sends a packet over UDP and waits for the response.
func ask(ctx context.Context, address string, out io.Writer) error {
	connection, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, "udp", address)
	if err != nil {
		return err
	}
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := connection.Write([]byte("hello")); err != nil {
		return err
	}
	buffer := make([]byte, 1500)
	n, err := connection.Read(buffer)
	fmt.Fprintln(out, string(buffer[:n]))
	return err
}

func get(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responds %s", url, response.Status)
	}
	_, err = io.Copy(out, response.Body)
	return err
}

// wait returns when the URL responds.
func wait(ctx context.Context, url string) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := get(ctx, url, io.Discard); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
