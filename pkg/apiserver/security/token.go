package security

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/security/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/workloadidentity"
)

// Tokens issues tokens of WorkloadIdentities.
type Tokens struct {
	// Garden reads the context objects of tokens.
	Garden client.Reader
	// Signer signs the tokens. Without one, no tokens are issued.
	Signer *workloadidentity.Signer
	// MinExpiration and MaxExpiration limit the validity.
	MinExpiration, MaxExpiration time.Duration
	// Now is the current time.
	Now func() time.Time
}

// tokenREST is the subresource that responds to a TokenRequest with a token.
type tokenREST struct {
	Tokens

	identities rest.Getter
}

var (
	_ rest.NamedCreater             = &tokenREST{}
	_ rest.GroupVersionKindProvider = &tokenREST{}
)

// New implements rest.Storage.
func (*tokenREST) New() runtime.Object { return &securityv1alpha1.TokenRequest{} }

// Destroy implements rest.Storage.
func (*tokenREST) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*tokenREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return securityv1alpha1.SchemeGroupVersion.WithKind("TokenRequest")
}

// Create implements rest.NamedCreater. It fails with InternalError if the server has no signing key, and with Invalid if
// the request names another object or a validity that is out of bounds. A dry run issues no token.
func (t *tokenREST) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	if t.Signer == nil {
		return nil, apierrors.NewInternalError(errors.New("workload identity tokens cannot be issued: the API server has no signing key"))
	}
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	asked := obj.(*securityv1alpha1.TokenRequest)
	if errs := validation.ValidateTokenRequest(asked, name, request.NamespaceValue(ctx)); len(errs) > 0 {
		return nil, apierrors.NewInvalid(securityv1alpha1.Kind("TokenRequest"), name, errs)
	}
	found, err := t.identities.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	identity := found.(workloadIdentity)
	claimed, err := t.contextOf(ctx, identity, asked.Spec.ContextObject)
	if err != nil {
		return nil, err
	}
	issued := t.Now().Truncate(time.Second)
	expires := issued.Add(workloadidentity.Validity(*asked.Spec.ExpirationSeconds, t.MinExpiration, t.MaxExpiration))
	if options != nil && len(options.DryRun) > 0 {
		asked.Status = securityv1alpha1.TokenRequestStatus{ExpirationTimestamp: metav1.NewTime(expires)}
		return asked, nil
	}
	token, err := t.Signer.Sign(workloadidentity.Claims{
		ID: string(uuid.NewUUID()), Subject: identity.Status.Sub, Audience: identity.Spec.Audiences, Context: claimed,
		IssuedAt: issued, Expires: expires,
	})
	if err != nil {
		return nil, fmt.Errorf("issue a token of WorkloadIdentity %s/%s: %w", identity.Namespace, identity.Name, err)
	}
	asked.Status = securityv1alpha1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return asked, nil
}

// contextOf returns the claims about the context object of a token. Only gardenlets may request one.
func (t *tokenREST) contextOf(
	ctx context.Context, identity workloadIdentity, of *securityv1alpha1.ContextObject,
) (workloadidentity.Context, error) {
	claimed := workloadidentity.Context{WorkloadIdentity: *referenceTo(identity)}
	requester, known := request.UserFrom(ctx)
	if of == nil || !known || !slices.Contains(requester.GetGroups(), constants.SeedsGroup) {
		return claimed, nil
	}
	err := (&resolver{reader: t.Garden, to: &claimed}).resolve(ctx, of)
	return claimed, err
}

func referenceTo(o client.Object) *workloadidentity.Reference {
	return &workloadidentity.Reference{Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID()}
}
