// Package ui provides the command that shows ManagedResources on a page in the browser.
package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/ui"
)

const (
	// headerTimeout limits how long a request may take to arrive. Requests have no body.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// headerLimit is larger than the page needs, because browsers send the cookies of all local servers.
	headerLimit = 64 << 10
	// shutdownTimeout limits how long pending responses may take after the program was stopped.
	shutdownTimeout = time.Second
)

type options struct {
	selector, class string
	port            uint16
	open            bool
}

// NewCommand returns the command ui.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "ui",
		Short: "Show ManagedResources live in the browser",
		Long: `Serves a web page that shows ManagedResources live. Those that need attention come first. For each, it shows the objects down to
Pods, why it is not ready, what applying would change, Events, and changes since the command was started. It uses the permissions of your
kubeconfig and never writes.

The page is served only on 127.0.0.1, until you press Ctrl-C. Each printed address opens the page once, in one browser. Then a new
address is printed.`,
		Example: `  # show all namespaces, or that of the kubeconfig if you may not list all
  kubectl mr ui --open

  # show one namespace, on a fixed port
  kubectl mr ui -n garden --port 8443`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), c, command.Flags().Changed("namespace"))
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "Select ManagedResources by labels, such as app=shop")
	flags.StringVar(&o.class, "class", "", `Select ManagedResources of this class; "resources" is the default class`)
	flags.Uint16Var(&o.port, "port", 0, "Port on 127.0.0.1 (default: any free port)")
	flags.BoolVar(&o.open, "open", false, "Open the page in the browser")
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, oneNamespace bool) error {
	options, err := o.scope(ctx, c, oneNamespace)
	if err != nil {
		return err
	}
	server, err := ui.New(options)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	address, is := listener.Addr().(*net.TCPAddr)
	if !is {
		return fmt.Errorf("serve the page on %s", listener.Addr())
	}
	var admitted *session
	admitted = newSession(address.Port, func() { fmt.Fprintf(c.Screen, "Address for another browser: %s\n", admitted.url()) })
	fmt.Fprintf(c.Screen, "ManagedResources in %s: %s\nPress Ctrl-C to stop.\n", options.Scope, admitted.url())
	if o.open {
		o.openBrowser(ctx, c, admitted.url())
	}
	go server.Run(ctx)
	return serve(ctx, listener, admitted.guard(server.Handler()))
}

// scope returns the scope of the page: all namespaces, unless a namespace is specified or the user may not list all
// of them.
func (o *options) scope(ctx context.Context, c *console.Console, oneNamespace bool) (ui.Options, error) {
	shown := ui.Options{Console: c, Choice: console.Choice{AllNamespaces: true, Selector: o.selector, Class: o.class}, Scope: "all namespaces"}
	source, err := c.Source()
	if err != nil {
		return shown, err
	}
	namespace, err := c.Namespace()
	if err != nil {
		return shown, err
	}
	if !oneNamespace {
		err := source.List(ctx, &resourcesv1alpha1.ManagedResourceList{}, client.Limit(1))
		if err == nil || !apierrors.IsForbidden(err) {
			return shown, err
		}
		c.Warn("You may not list ManagedResources in all namespaces: only namespace %s is shown.", namespace)
	}
	shown.Namespace, shown.Scope = namespace, "namespace "+namespace
	return shown, source.List(ctx, &resourcesv1alpha1.ManagedResourceList{}, client.Limit(1), client.InNamespace(namespace))
}

// serve serves until the context is canceled.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerLimit,
		BaseContext: func(net.Listener) context.Context { return ctx }, // so that streams end with it
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ending); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("end the page: %w", err)
	}
	return nil
}

// openBrowser opens the page in a browser. If that fails, the user can open it manually.
func (o *options) openBrowser(ctx context.Context, c *console.Console, url string) {
	program, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	command := exec.CommandContext(ctx, program, args...)
	if err := command.Start(); err != nil {
		c.Warn("Could not open the browser (%v): open the address manually.", err)
		return
	}
	go func() { _ = command.Wait() }() // the user sees whether it worked
}
