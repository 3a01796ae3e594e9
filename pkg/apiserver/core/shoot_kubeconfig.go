package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/authentication/validation"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apiserver/kubeconfig"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

// addressWildcard is the name of the address whose certificate clients trust without a CA.
const addressWildcard = "wildcard-tls-seed-bound"

// Kubeconfigs issues kubeconfigs for Shoots.
type Kubeconfigs struct {
	// Garden reads the InternalSecrets with the client CAs of Shoots.
	Garden client.Reader
	// Kubernetes reads the ConfigMaps and Secrets with their cluster CAs.
	Kubernetes kubernetes.Interface
	// Authorizer reports whether a user has the rights of the landscape's operators.
	Authorizer authorizer.Authorizer
	// AdminMaxExpiration and ViewerMaxExpiration limit the validity.
	AdminMaxExpiration, ViewerMaxExpiration time.Duration
	// Now is the current time.
	Now func() time.Time
}

// role defines the access that a kubeconfig gives to a Shoot.
type role struct {
	kind                       string
	userPrefix                 string
	systemGroup, projectGroup  string
	systemVersion, systemKinds string
	most                       time.Duration
	newRequest                 func() runtime.Object
	of                         func(runtime.Object) (
		*authenticationv1alpha1.KubeconfigRequestSpec, *authenticationv1alpha1.KubeconfigRequestStatus,
	)
}

// kubeconfigs is a subresource that responds to a request with a kubeconfig.
type kubeconfigs struct {
	Kubeconfigs

	role   role
	shoots rest.Getter
}

var (
	_ rest.NamedCreater             = &kubeconfigs{}
	_ rest.GroupVersionKindProvider = &kubeconfigs{}
)

func newAdminKubeconfigs(main *registry.Storage[shoot], issuer Kubeconfigs) *kubeconfigs {
	type request = *authenticationv1alpha1.AdminKubeconfigRequest
	return &kubeconfigs{Kubeconfigs: issuer, shoots: main, role: role{
		kind: "AdminKubeconfigRequest", userPrefix: constants.PrefixAdminKubeconfigUser,
		systemGroup: constants.ShootSystemAdminsGroup, projectGroup: constants.ShootProjectAdminsGroup,
		systemVersion: "v1", systemKinds: "Secret", // the group and the resource that Gardener checks
		most:       issuer.AdminMaxExpiration,
		newRequest: func() runtime.Object { return &authenticationv1alpha1.AdminKubeconfigRequest{} },
		of: func(o runtime.Object) (*authenticationv1alpha1.KubeconfigRequestSpec, *authenticationv1alpha1.KubeconfigRequestStatus) {
			return &o.(request).Spec, &o.(request).Status
		},
	}}
}

func newViewerKubeconfigs(main *registry.Storage[shoot], issuer Kubeconfigs) *kubeconfigs {
	type request = *authenticationv1alpha1.ViewerKubeconfigRequest
	return &kubeconfigs{Kubeconfigs: issuer, shoots: main, role: role{
		kind: "ViewerKubeconfigRequest", userPrefix: constants.PrefixViewerKubeconfigUser,
		systemGroup: constants.ShootSystemViewersGroup, projectGroup: constants.ShootProjectViewersGroup,
		systemVersion: gardencorev1beta1.SchemeGroupVersion.String(), systemKinds: "Project", // as above
		most:       issuer.ViewerMaxExpiration,
		newRequest: func() runtime.Object { return &authenticationv1alpha1.ViewerKubeconfigRequest{} },
		of: func(o runtime.Object) (*authenticationv1alpha1.KubeconfigRequestSpec, *authenticationv1alpha1.KubeconfigRequestStatus) {
			return &o.(request).Spec, &o.(request).Status
		},
	}}
}

// New implements rest.Storage.
func (k *kubeconfigs) New() runtime.Object { return k.role.newRequest() }

// Destroy implements rest.Storage.
func (*kubeconfigs) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (k *kubeconfigs) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return authenticationv1alpha1.SchemeGroupVersion.WithKind(k.role.kind)
}

// Create implements rest.NamedCreater. It fails with Invalid if the requested validity is out of bounds, or if the Shoot
// has no address yet. The answer to a dry run has no kubeconfig.
func (k *kubeconfigs) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	spec, status := k.role.of(obj)
	requester, known := request.UserFrom(ctx)
	if !known {
		return nil, apierrors.NewForbidden(gardencorev1beta1.Resource("shoots"), name, errors.New("the request has no user"))
	}
	if errs := validation.ValidateKubeconfigRequest(spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(authenticationv1alpha1.SchemeGroupVersion.WithKind(k.role.kind).GroupKind(), name, errs)
	}
	validity := min(time.Duration(*spec.ExpirationSeconds)*time.Second, k.role.most)
	found, err := k.shoots.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	content, expires, err := k.issue(ctx, found.(shoot), requester, validity)
	if err != nil {
		return nil, err
	}
	if options != nil && len(options.DryRun) > 0 {
		content = nil // credentials are valid however the audit log describes the request
	}
	status.Kubeconfig, status.ExpirationTimestamp = content, metav1.NewTime(expires)
	return obj, nil
}

func (k *kubeconfigs) issue(ctx context.Context, of shoot, requester user.Info, validity time.Duration) ([]byte, time.Time, error) {
	ca, err := k.clusterCA(ctx, of)
	if err != nil {
		return nil, time.Time{}, err
	}
	addresses := addressesOf(of, ca)
	if len(addresses) == 0 {
		return nil, time.Time{}, apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), of.Name, field.ErrorList{field.Invalid(
			field.NewPath("status", "advertisedAddresses"), of.Status.AdvertisedAddresses, "the Shoot has no address of its API server yet")})
	}
	authority := &gardencorev1beta1.InternalSecret{}
	if err := k.Garden.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name + constants.SuffixCAClient}, authority); err != nil {
		return nil, time.Time{}, fmt.Errorf("read the client CA of Shoot %s/%s: %w", of.Namespace, of.Name, err)
	}
	group, err := k.group(ctx, requester)
	if err != nil {
		return nil, time.Time{}, err
	}
	credentials, err := kubeconfig.Sign(
		kubeconfig.Authority{Certificate: authority.Data[constants.KeyCACert], Key: authority.Data[constants.KeyCAKey]},
		kubeconfig.Subject{User: k.role.userPrefix + requester.GetName(), Group: group}, validity, k.Now())
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("issue a kubeconfig for Shoot %s/%s: %w", of.Namespace, of.Name, err)
	}
	content, err := kubeconfig.Build(of.Namespace+"--"+of.Name, addresses, credentials)
	return content, credentials.NotAfter, err
}

// group returns the group of operators if the user is an operator, and the group of project members otherwise.
func (k *kubeconfigs) group(ctx context.Context, requester user.Info) (string, error) {
	decision, _, err := k.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: requester, Verb: "list", APIGroup: k.role.systemVersion, Resource: k.role.systemKinds, ResourceRequest: true,
	})
	if err != nil {
		return "", fmt.Errorf("check the rights of user %s: %w", requester.GetName(), err)
	}
	if decision == authorizer.DecisionAllow {
		return k.role.systemGroup, nil
	}
	return k.role.projectGroup, nil
}

// clusterCA reads the CA certificates of a Shoot's API server from a ConfigMap or, if that does not exist, from a Secret.
func (k *kubeconfigs) clusterCA(ctx context.Context, of shoot) ([]byte, error) {
	name := of.Name + constants.SuffixCACluster
	public, err := k.Kubernetes.CoreV1().ConfigMaps(of.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return []byte(public.Data[constants.KeyCACert]), nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the cluster CA of Shoot %s/%s: %w", of.Namespace, of.Name, err)
	}
	secret, err := k.Kubernetes.CoreV1().Secrets(of.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the cluster CA of Shoot %s/%s: %w", of.Namespace, of.Name, err)
	}
	return secret.Data[constants.KeyCACert], nil
}

func addressesOf(of shoot, ca []byte) []kubeconfig.Address {
	var addresses []kubeconfig.Address
	for _, advertised := range of.Status.AdvertisedAddresses {
		switch advertised.Name {
		case "external", "internal", "unmanaged":
			addresses = append(addresses, kubeconfig.Address{Name: advertised.Name, URL: advertised.URL, CA: ca})
		case addressWildcard:
			addresses = append(addresses, kubeconfig.Address{Name: advertised.Name, URL: advertised.URL})
		}
	}
	return addresses
}
