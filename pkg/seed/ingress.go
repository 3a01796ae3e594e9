package seed

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/credentials"
	"github.com/trellis-k8s/trellis/pkg/inventory"
)

const (
	bundleIngress = inventory.Ingress
	// bundleRecord has the DNS record of the domain for Ingresses, and its credentials.
	bundleRecord = "dnsrecord-" + recordName
	// recordName is the name of the DNSRecord, and of the Secret with its credentials (Gardener).
	recordName = "seed-ingress"
	// choiceRecord of bundleRecord is the type and name of the record. They are immutable, so a change deletes the record and then creates a new one.
	choiceRecord = "record"
	// recordTTL is the time to live of the record, in seconds (Gardener).
	recordTTL = 120
)

// hasIngressController reports whether the Seed has an ingress controller.
func (in Inputs) hasIngressController() bool {
	return in.Seed.Spec.Ingress != nil && !nginxingress.Disabled(in.Config.FeatureGates, nginxingress.GateOfSeed)
}

// withoutIngressController returns why the Seed has no ingress controller, empty if it has one.
func (in Inputs) withoutIngressController() string {
	switch {
	case in.Seed.Spec.Ingress == nil:
		return "spec.ingress is not set"
	case !in.hasIngressController():
		return "the feature gate " + nginxingress.GateOfSeed + " is enabled"
	}
	return ""
}

// ingressHost is the name of all hosts of the domain for Ingresses.
func (in Inputs) ingressHost() string { return "*." + in.Seed.Spec.Ingress.Domain }

// unknownMode returns why it is not known how API servers are exposed, empty if it is.
func (in Inputs) unknownMode() string {
	if _, err := exposure.ModeOf(in.Seed); err != nil {
		return err.Error()
	}
	return ""
}

// servesIngress returns the Service of type LoadBalancer at which clients reach the domain for Ingresses: that of the default gateway, or else that of the
// ingress controller. It is empty if there is none.
func (in Inputs) servesIngress() client.ObjectKey {
	mode, err := exposure.ModeOf(in.Seed)
	switch {
	case err != nil || in.Seed.Spec.Ingress == nil:
	case mode.HasGateways():
		gateway := in.gateways()[0]
		return client.ObjectKey{Namespace: gateway.Namespace, Name: gateway.Service}
	case mode == exposure.LoadBalancer && in.hasIngressController():
		return client.ObjectKey{Namespace: in.Namespace, Name: nginxingress.Service}
	}
	return client.ObjectKey{}
}

// ingressParts returns the parts with the ingress controller, and with the DNS record of its domain.
func (in Inputs) ingressParts() []table.Part {
	unknown, withoutRecord := in.unknownMode(), in.withoutRecord()
	if in.isRecordReplaced() {
		withoutRecord = "a record of another type is made when this one is deleted"
	}
	return []table.Part{
		{
			Name: bundleIngress, Absent: in.withoutIngressController(), Removed: true, Objects: in.ingressController, Unknown: unknown,
			Needs: []table.Need{table.Applied(bundleSystem), table.Healthy(definitionsIstio, definitionsGatewayAPI)}, DeletedAfter: []string{},
		},
		{
			Name: bundleRecord, Absent: withoutRecord, Removed: true, Confirmed: true, Objects: in.ingressRecord, Unknown: table.Join(unknown, in.unknownRecord()),
			Needs: []table.Need{table.Applied(bundleSystem)}, DeletedAfter: []string{}, Adjust: in.adjustRecord,
		},
	}
}

// ingressController returns the objects of the ingress controller, and those by which the default gateway forwards connections to it, without decrypting
// them.
func (in Inputs) ingressController() ([]client.Object, error) {
	mode, err := exposure.ModeOf(in.Seed)
	if err != nil {
		return nil, err
	}
	values := nginxingress.RuntimeValues{
		Namespace: in.Namespace, Replicas: in.replicas(), PriorityClass: constants.PriorityClassSystem600, Config: in.Seed.Spec.Ingress.Controller.ProviderConfig,
		VerticalPodAutoscaler: true,
	}
	if err := values.SetImages(in.image); err != nil {
		return nil, err
	}
	if mode == exposure.LoadBalancer {
		values.Balancer = ptr.To(exposure.OwnSettings(in.Seed))
	}
	if !mode.HasGateways() {
		return nginxingress.RuntimeObjects(values)
	}
	gateway := in.gateways()[0]
	values.Gateways = []string{gateway.Namespace}
	objects, err := nginxingress.RuntimeObjects(values)
	if err != nil {
		return nil, err
	}
	forwarding, err := apiserverexposure.Objects(apiserverexposure.Values{
		Namespace: in.Namespace, Service: nginxingress.Service, Port: nginxingress.Port, Mode: mode, Hosts: []string{in.ingressHost()},
		Gateways: []exposure.Gateway{gateway},
	})
	return append(objects, forwarding...), err
}

// withoutRecord returns why the Seed has no DNS record for Ingresses, empty if it has one.
func (in Inputs) withoutRecord() string {
	provider := in.Seed.Spec.DNS.Provider
	switch {
	case in.Seed.Spec.Ingress == nil:
		return "spec.ingress is not set"
	case provider == nil || provider.Type == corev1beta1.DNSUnmanaged:
		return "spec.dns.provider has no type that an extension manages"
	case in.unknownMode() != "":
		return "" // a record that exists stays
	case in.servesIngress() == client.ObjectKey{}:
		return "no load balancer serves the domain of spec.ingress"
	}
	return ""
}

// isRecordReplaced reports whether the existing record has another type or name.
func (in Inputs) isRecordReplaced() bool {
	return in.recordMade != "" && len(in.ingressAddresses) > 0 && in.withoutRecord() == "" && in.recordMade != in.recordIdentity()
}

// recordIdentity returns the immutable fields of the record: its type, its provider and its name.
func (in Inputs) recordIdentity() string {
	kind, _ := dnsvalues.Of(in.ingressAddresses)
	return string(kind) + " " + in.Seed.Spec.DNS.Provider.Type + " " + in.ingressHost()
}

// unknownRecord names the inputs of the record that are missing, empty if all are known.
func (in Inputs) unknownRecord() string {
	switch provider := in.Seed.Spec.DNS.Provider; {
	case in.withoutRecord() != "", in.unknownMode() != "":
	case len(in.ingressAddresses) == 0:
		return fmt.Sprintf("the Service %s, which serves the domain of spec.ingress, has no address yet", in.servesIngress())
	case in.dnsCredentials == nil:
		ref := ptr.Deref(provider.CredentialsRef, corev1.ObjectReference{})
		return fmt.Sprintf("spec.dns.provider.credentialsRef: %s %s/%s does not exist in the garden", ref.Kind, ref.Namespace, ref.Name)
	}
	return ""
}

// ingressRecord returns the DNSRecord, and a copy of its credentials.
func (in Inputs) ingressRecord() ([]client.Object, error) {
	secret, digest, err := in.recordCredentials()
	if err != nil {
		return nil, fmt.Errorf("spec.dns.provider.credentialsRef: %w", err)
	}
	kind, values := dnsvalues.Of(in.ingressAddresses)
	return []client.Object{secret, &extensionsv1alpha1.DNSRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: recordName, Annotations: map[string]string{
			constants.AnnotationGardenerOperation: constants.OperationReconcile, credentials.AnnotationDigest: digest,
		}},
		Spec: extensionsv1alpha1.DNSRecordSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: in.Seed.Spec.DNS.Provider.Type},
			SecretRef:   corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name},
			Name:        in.ingressHost(), RecordType: kind, Values: values, TTL: ptr.To[int64](recordTTL),
		},
	}}, nil
}

// recordCredentials returns the Secret with the credentials for the record, and their digest.
func (in Inputs) recordCredentials() (*corev1.Secret, string, error) {
	key := client.ObjectKey{Namespace: in.Namespace, Name: recordName}
	switch of := ptr.Deref(in.dnsCredentials, Reference{}); {
	case of.Secret != nil:
		return credentials.Copy(key, of.Secret), credentials.Digest(of.Secret.Data), nil
	case of.WorkloadIdentity != nil:
		secret, err := credentials.ForWorkloadIdentity(key, of.WorkloadIdentity, in.context())
		if err != nil {
			return nil, "", err
		}
		return secret, credentials.Digest(secret.Data, of.WorkloadIdentity.UID), nil
	}
	return nil, "", fmt.Errorf("a %s cannot be used as credentials, only a Secret or a WorkloadIdentity", in.Seed.Spec.DNS.Provider.CredentialsRef.Kind)
}

// adjustRecord configures the bundle of the record, and stores what is immutable.
func (in Inputs) adjustRecord(bundle *flow.Bundle) {
	flow.ForExtension(corev1beta1.KindDNSRecord)(bundle)
	bundle.Choices = map[string]string{choiceRecord: in.recordIdentity()}
}
