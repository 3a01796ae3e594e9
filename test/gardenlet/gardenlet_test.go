package gardenlet

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/audit"
)

// TestGardenlet runs gardenlet from its bootstrap kubeconfig to a ready Seed, and through later changes. The steps depend
// on each other.
func TestGardenlet(t *testing.T) {
	f := newFixture(t)
	f.approve()
	f.start()
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"bootstrap", f.bootstraps}, {"lease", f.renewsLease}, {"tokens", f.keepsTokens}, {"network policies", f.emitsNetworkPolicies},
		{"eviction requirements", f.restrictsEvictions}, {"operation", f.renewsKubeconfig}, {"access revoked", f.losesAccess}, {"rest", f.rests},
		{"restart", f.restarts}, {"takeover", f.keepsTheLeader}, {"failover", f.failsOver}, {"garden away", f.survivesGarden}, {"writes", f.writesWhatItMay},
	} {
		before := f.T
		if !t.Run(step.name, func(t *testing.T) { f.T = t; step.run() }) {
			f.T = before
			t.FailNow()
		}
		f.T = before
	}
}

func (f *fixture) getSeed() *gardencorev1beta1.Seed {
	f.Helper()
	seed := &gardencorev1beta1.Seed{}
	if err := f.garden.Get(f.Context(), client.ObjectKey{Name: seedName}, seed); err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
	return seed
}

func (f *fixture) awaitReady() {
	f.Helper()
	kit.Eventually(f, "GardenletReady is True", func() string {
		for _, condition := range f.getSeed().Status.Conditions {
			if condition.Type == gardencorev1beta1.SeedGardenletReady {
				if condition.Status == gardencorev1beta1.ConditionTrue {
					return ""
				}
				return fmt.Sprintf("%+v", condition)
			}
		}
		return "the Seed does not have the condition"
	})
}

// bootstraps checks that gardenlet registers a Seed with its bootstrap kubeconfig, and that the credentials of the
// bootstrap are deleted afterwards.
func (f *fixture) bootstraps() {
	kit.EventuallyTrue(f, "the Seed is registered", func() bool { return f.getSeed().UID != "" })
	seed := f.getSeed()
	if seed.Labels["name.seed.gardener.cloud/one"] != "true" || seed.Labels["some"] != "label" || seed.Spec.Networks.Pods != "100.96.0.0/11" {
		f.Errorf("the Seed is %+v", seed)
	}
	if f.status("/healthz") != http.StatusOK {
		f.Error("gardenlet is not healthy while it waits for the namespace of the Seed")
	}
	f.admit()
	f.awaitReady()
	for in, secret := range map[client.Client]client.ObjectKey{
		f.seed: {Namespace: "garden", Name: "gardenlet-kubeconfig-bootstrap"}, f.garden: {Namespace: "kube-system", Name: "bootstrap-token-" + tokenID},
	} {
		if err := in.Get(f.Context(), secret, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			f.Errorf("Secret %s still exists: %v", secret, err)
		}
	}
	certificate := f.certificate()
	if certificate.Subject.CommonName != gardenUser || !slices.Equal(certificate.Subject.Organization, []string{"gardener.cloud:system:seeds"}) {
		f.Errorf("the certificate is for %s", certificate.Subject)
	}
	if validity := certificate.NotAfter.Sub(certificate.NotBefore); validity < 50*time.Minute || validity > 70*time.Minute {
		f.Errorf("the certificate is valid for %s, want about 1h", validity)
	}
	if kubeconfig := f.kubeconfigSecret(); len(kubeconfig.Annotations) > 0 {
		f.Errorf("the kubeconfig Secret has the annotations %v", kubeconfig.Annotations)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		kit.EventuallyTrue(f, path+" responds 200", func() bool { return f.status(path) == http.StatusOK })
	}
}

func (f *fixture) kubeconfigSecret() *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{}
	kit.Must(f, f.seed.Get(f.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet-kubeconfig"}, secret))
	return secret
}

// certificate returns the client certificate in the kubeconfig Secret.
func (f *fixture) certificate() *x509.Certificate {
	f.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(f.kubeconfigSecret().Data["kubeconfig"])
	kit.Must(f, err)
	block, _ := pem.Decode(config.CertData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	kit.Must(f, err)
	return certificate
}

func (f *fixture) lease() *coordinationv1.Lease {
	f.Helper()
	lease := &coordinationv1.Lease{}
	kit.Must(f, f.garden.Get(f.Context(), client.ObjectKey{Namespace: "gardener-system-seed-lease", Name: seedName}, lease))
	return lease
}

// renewsLease waits until the lease has been renewed twice. The second renewal was started after the call of renewsLease.
func (f *fixture) renewsLease() {
	f.Helper()
	for range 2 {
		before := f.lease()
		if *before.Spec.HolderIdentity != seedName || *before.Spec.LeaseDurationSeconds != 1 || before.OwnerReferences[0].UID != f.getSeed().UID {
			f.Errorf("the lease is %+v", before)
		}
		kit.EventuallyTrue(f, "the lease is renewed", func() bool { return f.lease().Spec.RenewTime.After(before.Spec.RenewTime.Time) })
	}
}

// operation annotates the Seed and waits until the annotation is removed.
func (f *fixture) operation(name string) {
	f.Helper()
	seed := f.getSeed()
	before := seed.DeepCopy()
	metav1.SetMetaDataAnnotation(&seed.ObjectMeta, "gardener.cloud/operation", name)
	kit.Must(f, f.garden.Patch(f.Context(), seed, client.MergeFrom(before)))
	kit.EventuallyTrue(f, "the operation "+name+" is finished", func() bool { return f.getSeed().Annotations["gardener.cloud/operation"] == "" })
}

// token returns the token in a Secret of the seed once it differs from not.
func (f *fixture) token(name, not string) string {
	f.Helper()
	var token string
	kit.EventuallyTrue(f, "Secret "+name+" has another token", func() bool {
		secret := &corev1.Secret{}
		kit.Must(f, f.seed.Get(f.Context(), client.ObjectKey{Namespace: "garden", Name: name}, secret))
		token = string(secret.Data["token"])
		return token != "" && token != not
	})
	return token
}

// keepsTokens checks that gardenlet requests tokens of ServiceAccounts in the namespace of the Seed and of
// WorkloadIdentities, and renews them when the Seed is annotated.
func (f *fixture) keepsTokens() {
	kit.Must(f, f.garden.Create(f.Context(), &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "identity"},
		Spec: securityv1alpha1.WorkloadIdentitySpec{
			Audiences: []string{"cloud"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"},
		},
	}))
	f.secret("garden-access-extension", func(secret *corev1.Secret) {
		secret.Labels = map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "garden"}
		secret.Annotations = map[string]string{
			"serviceaccount.resources.gardener.cloud/name": "extension", "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
		}
	}, nil)
	f.secret("identity", func(secret *corev1.Secret) {
		secret.Labels = map[string]string{"security.gardener.cloud/purpose": "workload-identity-token-requestor"}
		secret.Annotations = map[string]string{
			"workloadidentity.security.gardener.cloud/namespace": "garden", "workloadidentity.security.gardener.cloud/name": "identity",
		}
	}, nil)
	access, identity := f.token("garden-access-extension", ""), f.token("identity", "")
	kit.Must(f, f.garden.Get(f.Context(), client.ObjectKey{Namespace: "seed-" + seedName, Name: "extension"}, &corev1.ServiceAccount{}))
	f.operation("renew-garden-access-secrets")
	f.token("garden-access-extension", access)
	if f.token("identity", "") != identity {
		f.Error("the operation for garden access renewed the token of a WorkloadIdentity")
	}
	f.operation("renew-workload-identity-tokens")
	f.token("identity", identity)
}

// emitsNetworkPolicies checks that a namespace has a ManagedResource with policies as long as it exists.
func (f *fixture) emitsNetworkPolicies() {
	namespace := f.namespace(f.seed, "extension-a", map[string]string{"gardener.cloud/role": "extension"})
	key := client.ObjectKey{Namespace: "garden", Name: "network-policies-extension-a"}
	kit.EventuallyTrue(f, "the policies are emitted", func() bool {
		return f.seed.Get(f.Context(), key, &resourcesv1alpha1.ManagedResource{}) == nil
	})
	kit.Must(f, f.seed.Delete(f.Context(), namespace)) // without a controller, it stays Terminating
	kit.EventuallyTrue(f, "the policies are deleted", func() bool {
		return apierrors.IsNotFound(f.seed.Get(f.Context(), key, &resourcesv1alpha1.ManagedResource{}))
	})
}

// restrictsEvictions checks that gardenlet reconciles a kind that is defined in the seed while gardenlet is running.
func (f *fixture) restrictsEvictions() {
	f.defineAutoscalers()
	autoscaler := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
		"metadata": map[string]any{
			"namespace": "garden", "name": "etcd",
			"labels":      map[string]any{"autoscaling.gardener.cloud/eviction-requirements": "managed-by-controller"},
			"annotations": map[string]any{"eviction-requirements.autoscaling.gardener.cloud/downscale-restriction": "never"},
		},
		"spec": map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "etcd"}},
	}}
	kit.Must(f, f.seed.Create(f.Context(), autoscaler))
	kit.EventuallyTrue(f, "evictions are restricted", func() bool {
		kit.Must(f, f.seed.Get(f.Context(), client.ObjectKeyFromObject(autoscaler), autoscaler))
		requirements, _, err := unstructured.NestedSlice(autoscaler.Object, "spec", "updatePolicy", "evictionRequirements")
		kit.Must(f, err)
		return len(requirements) == 1
	})
}

// renewsKubeconfig checks that the process continues with a new certificate.
func (f *fixture) renewsKubeconfig() {
	before, pid := f.certificate(), f.process.PID()
	f.operation("renew-kubeconfig")
	kit.EventuallyTrue(f, "the certificate is renewed", func() bool { return f.certificate().SerialNumber.Cmp(before.SerialNumber) != 0 })
	if asked := f.kubeconfigSecret().Annotations["gardener.cloud/operation"]; asked != "" {
		f.Errorf("the Secret still requests the operation %s", asked)
	}
	f.renewsLease()
	if err := f.process.Err(); err != nil || f.process.PID() != pid {
		f.Errorf("gardenlet was restarted: %v", err)
	}
	// The audit log contains the credential of each request.
	events, _ := audit.Requests(f.T, f.gardenAudit, gardenUser, 0)
	used := map[string]bool{}
	for _, event := range events {
		for _, id := range event.User.Extra[credentialID] {
			used[id] = true
		}
	}
	if len(used) != 2 {
		f.Errorf("gardenlet has used the certificates %v, want two", used)
	}
}

// losesAccess checks that gardenlet is unhealthy without the permission to renew its lease, and healthy again with it.
func (f *fixture) losesAccess() {
	binding := &rbacv1.RoleBinding{}
	key := client.ObjectKey{Namespace: "gardener-system-seed-lease", Name: gardenUser}
	kit.Must(f, f.garden.Get(f.Context(), key, binding))
	kit.Must(f, f.garden.Delete(f.Context(), binding))
	kit.EventuallyTrue(f, "gardenlet is not healthy", func() bool { return f.status("/healthz") == http.StatusInternalServerError })
	binding.ResourceVersion, binding.UID = "", ""
	kit.Must(f, f.garden.Create(f.Context(), binding))
	kit.EventuallyTrue(f, "gardenlet is healthy again", func() bool { return f.status("/healthz") == http.StatusOK })
	f.renewsLease()
}

// rests checks that gardenlet writes nothing else while it renews its lease five times, and reads only the health of the
// seed.
func (f *fixture) rests() {
	f.renewsLease()
	_, gardenLines := audit.Requests(f.T, f.gardenAudit, gardenUser, 0)
	_, seedLines := audit.Requests(f.T, f.seedAudit, seedUser, 0)
	for range 5 {
		f.renewsLease()
	}
	inGarden, _ := audit.Requests(f.T, f.gardenAudit, gardenUser, gardenLines)
	inSeed, _ := audit.Requests(f.T, f.seedAudit, seedUser, seedLines)
	isNoWatch := func(event auditv1.Event) bool { return event.Verb != "watch" }
	if got := audit.Described(inGarden, isNoWatch); !slices.Equal(got, []string{"update leases.coordination.k8s.io"}) {
		f.Errorf("requests to the garden at rest: %q", got)
	}
	for _, got := range audit.Described(inSeed, isNoWatch) {
		if got != "get /healthz" && !strings.HasSuffix(got, " leases.coordination.k8s.io") {
			f.Errorf("request to the seed at rest: %s", got)
		}
	}
}

// restarts checks that gardenlet writes only its leases after a restart.
func (f *fixture) restarts() {
	kit.Must(f, f.process.Stop(kit.WaitTimeout))
	_, gardenLines := audit.Requests(f.T, f.gardenAudit, gardenUser, 0)
	_, seedLines := audit.Requests(f.T, f.seedAudit, seedUser, 0)
	f.start()
	f.renewsLease()
	kit.EventuallyTrue(f, "gardenlet is ready", func() bool { return f.status("/readyz") == http.StatusOK })
	f.renewsLease()
	inGarden, _ := audit.Requests(f.T, f.gardenAudit, gardenUser, gardenLines)
	inSeed, _ := audit.Requests(f.T, f.seedAudit, seedUser, seedLines)
	for _, event := range slices.Concat(inGarden, inSeed) {
		if isOther(event) {
			f.Errorf("write after a restart: %s %s", audit.Describe(event), event.ObjectRef.Name)
		}
	}
}

// isOther reports whether a request writes objects other than leases and Events.
func isOther(event auditv1.Event) bool {
	return audit.IsWrite(event) && event.ObjectRef != nil && event.ObjectRef.Resource != "leases" && event.ObjectRef.Resource != "events"
}

// writesWhatItMay compares all writes of gardenlet with the allowed ones: ManagedResources with their Secrets, leases,
// Events, and the listed exceptions.
func (f *fixture) writesWhatItMay() {
	const leases, tokens = "leases.coordination.k8s.io", "create workloadidentities/token.security.gardener.cloud"
	for _, test := range []struct {
		file, user string
		allowed    []string
	}{
		{f.seedAudit, seedUser, []string{
			"create secrets", "update secrets", "patch secrets", "delete secrets", "create events.events.k8s.io", "patch events.events.k8s.io",
			"patch managedresources.resources.gardener.cloud", "delete managedresources.resources.gardener.cloud", "create " + leases, "update " + leases,
			"patch verticalpodautoscalers.autoscaling.k8s.io",
		}},
		{f.gardenAudit, gardenUser, []string{
			"create seeds.core.gardener.cloud", "update seeds.core.gardener.cloud", "patch seeds.core.gardener.cloud", "patch seeds/status.core.gardener.cloud",
			"create " + leases, "update " + leases, "create events.events.k8s.io", "patch events.events.k8s.io", "delete secrets",
			"create certificatesigningrequests.certificates.k8s.io", "patch serviceaccounts", "create serviceaccounts/token", tokens,
		}},
	} {
		events, _ := audit.Requests(f.T, test.file, test.user, 0)
		writes := audit.Described(events, audit.IsWrite)
		f.Logf("writes of %s: %q", test.user, writes)
		for _, write := range writes {
			if !slices.Contains(test.allowed, write) {
				f.Errorf("%s: %s is not allowed by the rule", test.user, write)
			}
		}
		// losesAccess takes the right to the lease away. Watches in the namespace of the Seed begin when it exists, and the rights
		// there come a moment later.
		isRefused := func(event auditv1.Event) bool {
			ref := event.ObjectRef
			early := ref != nil && ref.Namespace == "seed-one" && (event.Verb == "list" || event.Verb == "watch")
			return audit.IsForbidden(event) && ref != nil && ref.Resource != "leases" && !early
		}
		if refused := audit.Described(events, isRefused); len(refused) > 0 {
			first := slices.IndexFunc(events, isRefused)
			f.Errorf("%s lacks permissions: %q, for example for %s at %s", test.user, refused, events[first].RequestURI, events[first].RequestReceivedTimestamp)
		}
	}
}
