// Package dnsrecord manages DNS records. The zones are files in a ConfigMap, which the DNS server of a landscape reads.
// The ConfigMap takes the place of the API of a DNS service, so it is written directly instead of being deployed with a
// ManagedResource.
package dnsrecord

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
)

// prefixFile is the prefix of the keys of zone files. The plugin auto of CoreDNS expects the name of the zone after it.
const prefixFile = "db."

// Actuator writes DNS records.
type Actuator struct {
	// Client writes the ConfigMap. Uncached reads it.
	Client   client.Client
	Uncached client.Reader
	// ConfigMap is the key of the ConfigMap with the zone files.
	ConfigMap client.ObjectKey
	// Zones are the served domains, without a trailing dot.
	Zones []string
}

var _ extension.Actuator[*extensionsv1alpha1.DNSRecord] = &Actuator{}

// Reconcile writes the record, and sets its zone in the status.
func (a *Actuator) Reconcile(ctx context.Context, object *extensionsv1alpha1.DNSRecord, _ *extension.Cluster) (extension.Result, error) {
	zone, err := zoneOf(object, a.Zones)
	if err != nil {
		return extension.Result{}, extension.ConfigurationProblem(err)
	}
	record, err := recordOf(object)
	if err != nil {
		return extension.Result{}, extension.ConfigurationProblem(err)
	}
	if before := ptr.Deref(object.Status.Zone, ""); before != "" && before != zone {
		if err := a.write(ctx, before, Record{Name: record.Name, Type: record.Type}); err != nil {
			return extension.Result{}, err
		}
	}
	if err := a.write(ctx, zone, record); err != nil {
		return extension.Result{}, err
	}
	object.Status.Zone = &zone
	return extension.Done(), nil
}

// Delete removes the record from its zone. A record without a zone was never written.
func (a *Actuator) Delete(ctx context.Context, object *extensionsv1alpha1.DNSRecord, _ *extension.Cluster) (extension.Result, error) {
	zone := ptr.Deref(object.Status.Zone, "")
	if zone == "" {
		return extension.Done(), nil
	}
	return extension.Done(), a.write(ctx, zone, Record{Name: fqdn(object.Spec.Name), Type: string(object.Spec.RecordType)})
}

// ForceDelete does nothing, because the zone may not be accessible.
func (a *Actuator) ForceDelete(context.Context, *extensionsv1alpha1.DNSRecord, *extension.Cluster) (extension.Result, error) {
	return extension.Done(), nil
}

// Migrate removes the record, because each seed has its own zones.
func (a *Actuator) Migrate(
	ctx context.Context, object *extensionsv1alpha1.DNSRecord, cluster *extension.Cluster,
) (extension.Result, error) {
	return a.Delete(ctx, object, cluster)
}

// Restore writes the record.
func (a *Actuator) Restore(
	ctx context.Context, object *extensionsv1alpha1.DNSRecord, cluster *extension.Cluster,
) (extension.Result, error) {
	return a.Reconcile(ctx, object, cluster)
}

// write sets the values of a record in a zone. It only writes changes, and fails if another client has changed the ConfigMap.
func (a *Actuator) write(ctx context.Context, zone string, record Record) error {
	found := &corev1.ConfigMap{}
	err := a.Uncached.Get(ctx, a.ConfigMap, found)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read ConfigMap %s with the zones: %w", a.ConfigMap, err)
	}
	key := prefixFile + zone
	text := replace(zone, found.Data[key], record)
	if text == found.Data[key] || missing && len(record.Values) == 0 {
		return nil
	}
	if missing {
		found.ObjectMeta = metav1.ObjectMeta{Namespace: a.ConfigMap.Namespace, Name: a.ConfigMap.Name}
		found.Data = map[string]string{key: text}
		err = a.Client.Create(ctx, found)
	} else {
		patch := client.MergeFromWithOptions(found.DeepCopy(), client.MergeFromWithOptimisticLock{})
		if found.Data == nil {
			found.Data = map[string]string{}
		}
		found.Data[key] = text
		err = a.Client.Patch(ctx, found, patch)
	}
	if err != nil {
		return fmt.Errorf("write zone %s to ConfigMap %s: %w", zone, a.ConfigMap, err)
	}
	return nil
}
