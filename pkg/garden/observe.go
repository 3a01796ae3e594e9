package garden

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

// autoscalerKind is the CustomResourceDefinition of VerticalPodAutoscalers.
const autoscalerKind = "verticalpodautoscalers.autoscaling.k8s.io"

// observe reads the inputs of the plan. Objects that change often are read from caches.
func (p *pass) observe(ctx context.Context) error {
	r := p.reconciler
	facts, err := r.facts.Get(ctx)
	if err != nil {
		return err
	}
	garden := p.garden.DeepCopy()
	operatorv1alpha1.SetDefaultsGarden(garden)
	p.in = Inputs{
		Owner: flow.Owner{Flow: FlowName, UID: garden.UID, Name: garden.Name}, Namespace: r.options.Namespace, Garden: garden,
		Config: r.options.Config, Version: r.options.Version, Images: r.images, KubernetesVersion: facts.Version,
		Deleting: garden.DeletionTimestamp != nil, Now: p.Wake.Now,
	}
	if p.in.Emitted, err = flow.Emitted(ctx, r.emitter.Reader, p.in.Owner); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *Inputs) error{
		r.observeCluster, r.observeSeed, r.observeServices, r.observeExposure, r.observeTokens, r.observeFiles, r.observeBucket, r.observeLedger, r.observeSecrets,
	} {
		if err := step(ctx, &p.in); err != nil {
			return err
		}
	}
	if !p.in.Deleting {
		return nil
	}
	return r.observeUsers(ctx, &p.in)
}

// observeCluster reads the number of nodes and whether VerticalPodAutoscalers are defined.
func (r *reconciler) observeCluster(ctx context.Context, in *Inputs) error {
	nodes := metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.caches.runtime.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	in.Nodes = len(nodes.Items)
	var definition apiextensionsv1.CustomResourceDefinition
	err := r.caches.runtime.Get(ctx, client.ObjectKey{Name: autoscalerKind}, &definition, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the definition %s: %w", autoscalerKind, err)
	}
	in.HasVerticalPodAutoscaler = ptr.To(err == nil)
	return nil
}

// observeServices reads the address of the garden's own API server.
func (r *reconciler) observeServices(ctx context.Context, in *Inputs) error {
	var own corev1.Service
	name := gardenerprograms.APIServer.Name()
	err := r.caches.runtime.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: name}, &own)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Service %s/%s: %w", in.Namespace, name, err)
	}
	if own.Spec.ClusterIP != corev1.ClusterIPNone {
		in.APIServerAddress = own.Spec.ClusterIP
	}
	return nil
}

// observeTokens reads when the tokens in access Secrets are renewed.
func (r *reconciler) observeTokens(ctx context.Context, in *Inputs) error {
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.caches.others.List(ctx, &list, client.UnsafeDisableDeepCopy, client.InNamespace(in.Namespace), client.MatchingLabels{
		resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor,
	}); err != nil {
		return fmt.Errorf("list the access Secrets in namespace %s: %w", in.Namespace, err)
	}
	in.Tokens = map[string]time.Time{}
	for _, item := range list.Items {
		renewal, err := time.Parse(time.RFC3339, item.Annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp])
		if err == nil && strings.HasPrefix(item.Name, constants.PrefixShootAccess) {
			in.Tokens[item.Name] = renewal
		}
	}
	return nil
}

// observeFiles reads the objects that the Garden refers to. An object that does not exist is unknown.
func (r *reconciler) observeFiles(ctx context.Context, in *Inputs) error {
	files, err := userfiles.Read(in.references(), func(name string, into client.Object) error {
		return r.uncached.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: name}, into)
	})
	in.Files = files
	return err
}

// observeSecrets generates the Secrets of the components and reads them. A deletion generates none.
func (r *reconciler) observeSecrets(ctx context.Context, in *Inputs) error {
	wanted := in.wantedSecrets()
	if in.Deleting {
		items, err := r.secrets.Existing(ctx, wanted)
		in.Secrets = items
		return err
	}
	result, err := r.secrets.Ensure(ctx, wanted)
	if err != nil {
		return err
	}
	in.Secrets, in.SecretsRenewed = result.Items, result.Next
	r.unused = len(result.Unused)
	return nil
}
