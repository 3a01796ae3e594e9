// Package cluster connects the node agent to the API server of its cluster. It has typed requests for the few objects that a node agent may read
// and write, and watches of single objects. It has no clients of other kinds, which keeps the program small.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/restclient"
)

// requestTimeout limits each request but watches.
const requestTimeout = 30 * time.Second

// Client sends the requests of a node agent. Its methods may be called concurrently.
type Client struct {
	core, coordination, certificates rest.Interface
	http                             *http.Client
}

// New returns a client. Nothing is sent.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	groups := []schema.GroupVersion{corev1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion, certificatesv1.SchemeGroupVersion}
	if err := errors.Join(corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), certificatesv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.DisableCompression = true // objects are small, and the API server would have a compressor for each watch of each node
	config.Wrap(restclient.NoRedirects)
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the connection to the API server: %w", err)
	}
	client := &Client{http: shared}
	for i, into := range []*rest.Interface{&client.core, &client.coordination, &client.certificates} {
		own := rest.CopyConfig(config)
		own.GroupVersion, own.APIPath = &groups[i], "/apis"
		if groups[i].Group == "" {
			own.APIPath = "/api"
		}
		if *into, err = rest.RESTClientForConfigAndClient(own, shared); err != nil {
			return nil, fmt.Errorf("the connection to the API server: %w", err)
		}
	}
	return client, nil
}

// Close closes connections that no request uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do sends a request and decodes the answer.
func do(ctx context.Context, request *rest.Request, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return request.Do(ctx).Into(into)
}

// Secret reads a Secret of the namespace kube-system.
func (c *Client) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := do(ctx, c.core.Get().Resource("secrets").Namespace(metav1.NamespaceSystem).Name(name), secret)
	return secret, wrap("read", "Secret", name, err)
}

// PatchNode changes a Node. subresource is empty or status.
func (c *Client) PatchNode(ctx context.Context, name string, kind types.PatchType, patch []byte, subresource string) error {
	request := c.core.Patch(kind).Resource("nodes").Name(name).Body(patch)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	return wrap("change", "Node", name, do(ctx, request, &corev1.Node{}))
}

// DeletePods deletes all Pods of a node.
func (c *Client) DeletePods(ctx context.Context, node string) error {
	pods := &corev1.PodList{}
	list := c.core.Get().Resource("pods").VersionedParams(&metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	}, metav1.ParameterCodec)
	if err := do(ctx, list, pods); err != nil {
		return wrap("list the Pods of", "Node", node, err)
	}
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		err := do(ctx, c.core.Delete().Resource("pods").Namespace(pod.Namespace).Name(pod.Name), &corev1.Pod{})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, wrap("delete", "Pod", pod.Namespace+"/"+pod.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Lease reads a Lease of the namespace kube-system.
func (c *Client) Lease(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := do(ctx, c.coordination.Get().Resource("leases").Namespace(metav1.NamespaceSystem).Name(name), lease)
	return lease, wrap("read", "Lease", name, err)
}

// CreateLease creates a Lease of the namespace kube-system.
func (c *Client) CreateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	created := &coordinationv1.Lease{}
	err := do(ctx, c.coordination.Post().Resource("leases").Namespace(metav1.NamespaceSystem).Body(lease), created)
	return created, wrap("create", "Lease", lease.Name, err)
}

// UpdateLease updates a Lease of the namespace kube-system.
func (c *Client) UpdateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	updated := &coordinationv1.Lease{}
	err := do(ctx, c.coordination.Put().Resource("leases").Namespace(metav1.NamespaceSystem).Name(lease.Name).Body(lease), updated)
	return updated, wrap("update", "Lease", lease.Name, err)
}

// CreateRequest creates a CertificateSigningRequest.
func (c *Client) CreateRequest(ctx context.Context, request *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	created := &certificatesv1.CertificateSigningRequest{}
	err := do(ctx, c.certificates.Post().Resource("certificatesigningrequests").Body(request), created)
	return created, wrap("create", "CertificateSigningRequest", request.GenerateName, err)
}

// Request reads a CertificateSigningRequest.
func (c *Client) Request(ctx context.Context, name string) (*certificatesv1.CertificateSigningRequest, error) {
	request := &certificatesv1.CertificateSigningRequest{}
	err := do(ctx, c.certificates.Get().Resource("certificatesigningrequests").Name(name), request)
	return request, wrap("read", "CertificateSigningRequest", name, err)
}

// CreateEvent creates an Event.
func (c *Client) CreateEvent(ctx context.Context, event *corev1.Event) error {
	err := do(ctx, c.core.Post().Resource("events").Namespace(event.Namespace).Body(event), &corev1.Event{})
	return wrap("create", "Event", event.Name, err)
}

// WatchSecret watches one Secret of the namespace kube-system until the context ends. changed is called after each change.
func (c *Client) WatchSecret(ctx context.Context, name string, into *Watched[corev1.Secret]) {
	run(ctx, c.core, "secrets", metav1.NamespaceSystem, fields.OneTermEqualSelector("metadata.name", name).String(), "", &corev1.Secret{}, into)
}

// WatchNode watches the Node with a host name until the context ends: by its label until it exists, and then by its name.
func (c *Client) WatchNode(ctx context.Context, host string, into *Watched[corev1.Node]) {
	found, cancel := context.WithCancel(ctx)
	first := &Watched[corev1.Node]{}
	first.OnChange(func() {
		if node, known := first.Get(); known {
			into.set(node, true)
			if node != nil {
				cancel()
			}
		}
	})
	run(found, c.core, "nodes", "", "", corev1.LabelHostname+"="+host, &corev1.Node{}, first)
	cancel()
	if node, _ := first.Get(); node != nil && ctx.Err() == nil {
		run(ctx, c.core, "nodes", "", fields.OneTermEqualSelector("metadata.name", node.Name).String(), "", &corev1.Node{}, into)
	}
}

func wrap(verb, kind, name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s %s %s: %w", verb, kind, name, err)
	}
	return nil
}
