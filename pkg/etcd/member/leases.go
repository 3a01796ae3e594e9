package member

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/etcd/backup"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
)

const (
	// fieldManager is the field manager of members.
	fieldManager = "etcd-member"
	// maxResponse limits the size in bytes of a response of the API server.
	maxResponse = 4 << 20
)

// leases accesses the Leases of the members of an Etcd. It does not use the clients of client-go, because the types of
// all APIs would need more memory than the rest of the program.
type leases struct {
	client    *http.Client
	base      string
	etcd, own string
}

// newLeases returns access to the Leases of an Etcd for one of its members.
func newLeases(access *rest.Config, namespace, etcd, own string) (*leases, error) {
	access = rest.CopyConfig(access)
	access.Timeout = requestTimeout
	client, err := rest.HTTPClientFor(access)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the API server: %w", err)
	}
	server, _, err := rest.DefaultServerURL(access.Host, "", coordinationv1.SchemeGroupVersion, rest.IsConfigTransportTLS(*access))
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the API server: %w", err)
	}
	base := strings.TrimSuffix(server.String(), "/") + "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
	return &leases{client, base, etcd, own}, nil
}

// list reads the Leases from the API server.
func (l *leases) list(ctx context.Context) ([]lease.Member, error) {
	selector := labels.SelectorFromSet(labels.Set{
		lease.LabelManagedBy: lease.ManagedBy, lease.LabelPartOf: l.etcd, lease.LabelComponent: lease.Component,
	})
	var list coordinationv1.LeaseList
	if err := l.send(ctx, http.MethodGet, "?labelSelector="+url.QueryEscape(selector.String()), nil, &list); err != nil {
		return nil, fmt.Errorf("list the Leases of %s: %w", l.etcd, err)
	}
	members := make([]lease.Member, 0, len(list.Items))
	for i := range list.Items {
		members = append(members, lease.Read(&list.Items[i]))
	}
	return members, nil
}

// send sends a request and decodes the response.
func (l *leases) send(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, l.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", string(types.MergePatchType))
	}
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var status metav1.Status
		_ = json.Unmarshal(content, &status) // without a message, the status code is reported alone
		return fmt.Errorf("the API server answers %s: %s", response.Status, status.Message)
	}
	return json.Unmarshal(content, into)
}

// report is an update of a member's own Lease. Nil fields are unchanged, and an empty value removes an annotation.
type report struct {
	holder      *lease.Holder
	renewed     *time.Time
	annotations map[string]string
}

// write applies a report and returns the content of the updated Lease.
func (l *leases) write(ctx context.Context, r report) (lease.Member, error) {
	annotations := map[string]any{}
	for key, value := range r.annotations {
		annotations[key] = value
		if value == "" {
			annotations[key] = nil
		}
	}
	spec := map[string]any{}
	if r.holder != nil {
		spec["holderIdentity"] = r.holder.String()
	}
	if r.renewed != nil {
		spec["renewTime"] = metav1.NewMicroTime(*r.renewed)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": spec})
	if err != nil {
		return lease.Member{}, fmt.Errorf("write the Lease %s: %w", l.own, err)
	}
	written, err := l.patch(ctx, l.own, patch)
	if err != nil {
		return lease.Member{}, err
	}
	return lease.Read(written), nil
}

func (l *leases) patch(ctx context.Context, name string, patch []byte) (*coordinationv1.Lease, error) {
	written := &coordinationv1.Lease{}
	if err := l.send(ctx, http.MethodPatch, "/"+name+"?fieldManager="+fieldManager, patch, written); err != nil {
		return nil, fmt.Errorf("write the Lease %s: %w", name, err)
	}
	return written, nil
}

// snapshot reads the Lease of a kind of snapshots. The content is empty if the Lease does not exist.
func (l *leases) snapshot(ctx context.Context, name string) (lease.Snapshot, error) {
	var list coordinationv1.LeaseList
	if err := l.send(ctx, http.MethodGet, "?fieldSelector="+url.QueryEscape("metadata.name="+name), nil, &list); err != nil {
		return lease.Snapshot{}, fmt.Errorf("read the Lease %s: %w", name, err)
	}
	for i := range list.Items {
		return lease.ReadSnapshot(&list.Items[i]), nil
	}
	return lease.Snapshot{}, nil
}

// writeSnapshot writes the Lease of a kind of snapshots. A zero point leaves it as it is, except for the error.
func (l *leases) writeSnapshot(ctx context.Context, name, cluster string, point backup.Point, failed string) error {
	annotations, spec := map[string]any{lease.AnnotationBackupError: nil}, map[string]any{}
	if failed != "" {
		annotations[lease.AnnotationBackupError] = conditiontext.Stable(failed)
	}
	if !point.Time.IsZero() {
		annotations[lease.AnnotationBackupCluster] = cluster
		spec["holderIdentity"] = strconv.FormatInt(point.Revision, 10)
		spec["renewTime"] = metav1.NewMicroTime(point.Time)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": spec})
	if err != nil {
		return fmt.Errorf("write the Lease %s: %w", name, err)
	}
	_, err = l.patch(ctx, name, patch)
	return err
}
