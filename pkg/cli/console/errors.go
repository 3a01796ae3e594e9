package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes.
const (
	// ExitNo means that the answer is no: there are differences, or what was waited for did not happen.
	ExitNo = 1
	// ExitFailed means that there is no answer: wrong usage, no cluster, no permission.
	ExitFailed = 2
)

// NoError says that the answer is no.
type NoError struct {
	// Message says why; empty if that was said already.
	Message string
}

// Error returns the message.
func (e *NoError) Error() string { return e.Message }

// ExitCode returns the exit code that an error stands for.
func ExitCode(err error) int {
	var no *NoError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &no):
		return ExitNo
	}
	return ExitFailed
}

// Explain returns an error with what a person can do about it.
func (c *Console) Explain(err error) error {
	var no *NoError
	if err == nil || errors.As(err, &no) {
		return err
	}
	if raw, _ := c.clusters.Kubeconfig(); raw == nil {
		return err // it is advice about kubeconfigs and flags
	}
	if advice := c.advise(err); advice != "" {
		return &advisedError{err: err, advice: advice}
	}
	return err
}

// advisedError is an error with advice below it.
type advisedError struct {
	err    error
	advice string
}

// Error returns the error and the advice.
func (e *advisedError) Error() string { return e.err.Error() + "\n" + e.advice }

// Unwrap returns the error.
func (e *advisedError) Unwrap() error { return e.err }

func (c *Console) advise(err error) string {
	var opError *net.OpError
	var dnsError *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case HasNoKind(err):
		return c.adviseNoKind()
	case apierrors.IsForbidden(err):
		return adviseForbidden(err)
	case apierrors.IsUnauthorized(err):
		return "The cluster does not accept these credentials, which may have expired: log in again, or choose another --context."
	case apierrors.IsUnsupportedMediaType(err):
		return "The API server is too old for server-side apply, which ManagedResources need: use Kubernetes 1.22 or newer."
	case apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err):
		return "The API server is overloaded or not ready: try again in a moment."
	case errors.As(err, &dnsError):
		return "The name of the API server is not known: is the kubeconfig the right one, and the network (VPN) up?" + c.whichCluster()
	case errors.As(err, &opError) && opError.Op == "dial":
		return "Nothing answers there: does the cluster run, is the kubeconfig the right one, and the network (VPN) up?" + c.whichCluster()
	case strings.Contains(err.Error(), "x509: "):
		return "The certificate of the API server is not that of the kubeconfig: is it the right cluster?" + c.whichCluster()
	case isTimeout(err):
		return "The API server took too long to answer: try again, or raise --request-timeout." + c.whichCluster()
	}
	return ""
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() || apierrors.IsTimeout(err)
}

func (c *Console) adviseNoKind() string {
	return fmt.Sprintf("The cluster%s has no ManagedResources. Is it the one that the resource-manager watches (--context)? Otherwise install "+
		"their definition:\n  kubectl apply --server-side -f config/crd", c.hostOf())
}

func adviseForbidden(err error) string {
	if strings.Contains(err.Error(), "at the cluster scope") {
		return "You may not read that in all namespaces: choose one with -n."
	}
	return "Ask for the permission; docs/cli.md lists what each command needs."
}

// whichCluster says which cluster is meant.
func (c *Console) whichCluster() string {
	raw, name := c.clusters.Kubeconfig()
	if raw == nil || name == "" {
		return ""
	}
	return fmt.Sprintf("\nThe context is %q; `kubectl config get-contexts` lists others.", name)
}

func (c *Console) hostOf() string {
	config, err := c.clusters.Source()
	if err != nil {
		return ""
	}
	if parsed, err := url.Parse(config.Host); err == nil && parsed.Host != "" {
		return " at " + parsed.Host
	}
	return " at " + config.Host
}
