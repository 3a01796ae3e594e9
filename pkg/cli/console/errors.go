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
	// ExitNo reports a negative result: there are differences, or wait timed out.
	ExitNo = 1
	// ExitFailed reports an error: invalid usage, unreachable cluster, missing permission.
	ExitFailed = 2
)

// NoError reports a negative result.
type NoError struct {
	// Message is the reason. It is empty if the reason was printed already.
	Message string
}

// Error returns the message.
func (e *NoError) Error() string { return e.Message }

// ExitCode returns the exit code for an error.
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

// Explain adds advice for the user to an error.
func (c *Console) Explain(err error) error {
	var no *NoError
	if err == nil || errors.As(err, &no) {
		return err
	}
	if raw, _ := c.clusters.Kubeconfig(); raw == nil {
		return err // the advice is about kubeconfigs and flags
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
		return "The name of the API server cannot be resolved: check the kubeconfig and the network (VPN)." + c.whichCluster()
	case errors.As(err, &opError) && opError.Op == "dial":
		return "The API server cannot be reached: check that the cluster is running, the kubeconfig, and the network (VPN)." + c.whichCluster()
	case strings.Contains(err.Error(), "x509: "):
		return "The certificate of the API server does not match the kubeconfig: check that it is the right cluster." + c.whichCluster()
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
	return fmt.Sprintf("The cluster%s does not serve ManagedResources. Check that it is the cluster that the resource-manager watches "+
		"(--context), or install the CRD:\n  kubectl apply --server-side -f config/crd", c.hostOf())
}

func adviseForbidden(err error) string {
	if strings.Contains(err.Error(), "at the cluster scope") {
		return "You may not read this in all namespaces: choose one with -n."
	}
	return "Request the permission; docs/cli.md lists what each command needs."
}

// whichCluster names the current context.
func (c *Console) whichCluster() string {
	raw, name := c.clusters.Kubeconfig()
	if raw == nil || name == "" {
		return ""
	}
	return fmt.Sprintf("\nThe current context is %q; list all with `kubectl config get-contexts`.", name)
}

func (c *Console) hostOf() string {
	config, err := c.clusters.Source()
	if err != nil {
		return ""
	}
	return " at " + HostOf(config.Host)
}

// HostOf returns the host and port of the address of an API server.
func HostOf(address string) string {
	if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
		return parsed.Host
	}
	return address
}
