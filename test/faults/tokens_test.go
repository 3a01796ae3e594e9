package faults

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/tokenrequestor"
	"github.com/trellis-k8s/trellis/test/kit"
)

// tokens are Secrets that request tokens of the ServiceAccounts with their names: "plain" receives it under a key,
// "kubeconfig" in a kubeconfig, and the token of "synced" is copied to the Secret "target".
type tokens struct {
	*ground
	// wanted are the Secrets that must have tokens, and former the tokens that they must no longer have.
	wanted []string
	former map[string]string
	// going maps objects, "<resource>/<name>", that may be deleted to the Secret that must be deleted first.
	going map[string]string
}

func beginTokens(g *ground) *tokens {
	return &tokens{ground: g, wanted: []string{"plain", "kubeconfig", "synced"}, former: map[string]string{}, going: map[string]string{}}
}

func (t *tokens) errand() errand {
	return errand{run: t.run, given: t.ask, before: t.objections, after: t.objections, attest: t.attest, picture: t.picture}
}

// newTokens creates Secrets that request tokens.
func newTokens(g *ground) errand {
	t := beginTokens(g)
	e := t.errand()
	e.given, e.before, e.change = func() {}, nothing, t.ask
	return e
}

// newRenewal makes tokens due for renewal.
func newRenewal(g *ground) errand {
	t := beginTokens(g)
	e := t.errand()
	e.change = func() {
		due := `{"metadata":{"annotations":{"` + resourcesv1alpha1.AnnotationTokenRenewTimestamp + `":"2000-01-01T00:00:00Z"}}}`
		former := map[string]string{}
		for _, name := range t.wanted {
			former[name] = t.token(name)
		}
		t.mu.Lock()
		t.former = former
		t.mu.Unlock()
		for _, name := range t.wanted {
			kit.Must(t, t.client.Patch(t.Context(), t.secret(name), client.RawPatch(types.MergePatchType, []byte(due))))
		}
	}
	return e
}

// newTokenEnd deletes Secrets that requested tokens.
func newTokenEnd(g *ground) errand {
	t := beginTokens(g)
	e := t.errand()
	e.change = func() {
		t.mu.Lock()
		t.wanted = []string{"kubeconfig"}
		t.going["serviceaccounts/plain"], t.going["serviceaccounts/synced"], t.going["secrets/target"] = "plain", "synced", "synced"
		t.mu.Unlock()
		for _, name := range []string{"plain", "synced"} {
			kit.Must(t, t.client.Delete(t.Context(), t.secret(name)))
		}
	}
	return e
}

func (t *tokens) run(ctx context.Context, l *life) error {
	config := t.controlPlane.Config()
	config.Wrap(l.wrap)
	options := managerOptions(t.client.Scheme())
	options.Cache.DefaultNamespaces = map[string]cache.Config{t.namespace: {}}
	mgr, err := manager.New(config, options)
	if err != nil {
		return err
	}
	serverClock := tokenrequestor.NewServerClock(clock.RealClock{})
	target := t.controlPlane.Config()
	target.Wrap(l.wrap)
	target.Wrap(serverClock.Wrap)
	core, err := kubernetes.NewForConfig(target)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(target)
	if err != nil {
		return err
	}
	reconciler := &tokenrequestor.Reconciler{
		Source: mgr.GetClient(), Direct: mgr.GetAPIReader(), Core: core.CoreV1(), Reviews: core.AuthenticationV1().TokenReviews(),
		Metadata: metadataClient, Target: target, ServerClock: serverClock,
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{}, Random: func() float64 { return 0.5 },
		Options: tokenrequestor.Options{
			Class: resourcesv1alpha1.ClassShoot, ClusterID: t.namespace, Namespaces: []string{t.namespace}, CleanUp: true, ConcurrentSyncs: 5,
		},
	}
	if err := reconciler.AddToManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (t *tokens) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}}
}

// ask creates the Secrets that request tokens.
func (t *tokens) ask() {
	t.Helper()
	for _, name := range t.wanted {
		secret := t.secret(name)
		secret.Labels = map[string]string{
			resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor, resourcesv1alpha1.LabelClass: resourcesv1alpha1.ClassShoot,
		}
		secret.Annotations = map[string]string{
			resourcesv1alpha1.AnnotationServiceAccountName: name, resourcesv1alpha1.AnnotationServiceAccountNamespace: t.namespace,
		}
		switch name {
		case "synced":
			secret.Annotations[resourcesv1alpha1.AnnotationTokenTargetName] = "target"
			secret.Annotations[resourcesv1alpha1.AnnotationTokenTargetNamespace] = t.namespace
		case "kubeconfig":
			secret.Data = map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\n" +
				"contexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://a'}}]\nusers: [{name: a, user: {}}]\n")}
		}
		kit.Must(t, t.client.Create(t.Context(), secret))
	}
}

// token returns the token that a Secret has requested, or an empty string.
func (t *tokens) token(name string) string {
	carrier := t.secret(name)
	if name == "synced" {
		carrier.Name = "target"
	}
	if err := t.client.Get(t.always(), client.ObjectKeyFromObject(carrier), carrier); err != nil {
		if !apierrors.IsNotFound(err) {
			t.violate("cannot read Secret %s: %v", carrier.Name, err)
		}
		return ""
	}
	return tokenIn(carrier.Data)
}

func tokenIn(data map[string][]byte) string {
	if raw := data["kubeconfig"]; len(raw) > 0 {
		config, err := clientcmd.Load(raw)
		if err != nil || config.AuthInfos["a"] == nil {
			return ""
		}
		return config.AuthInfos["a"].Token
	}
	return string(data["token"])
}

// objections returns the tokens that are missing, invalid or not renewed, and the objects that were not cleaned
// up.
func (t *tokens) objections() []string {
	t.Helper()
	var objections []string
	for _, name := range t.wanted {
		if text := t.wrong(name); text != "" {
			objections = append(objections, name+": "+text)
		}
	}
	for _, name := range t.names() {
		if _, goes := t.going[name]; goes {
			objections = append(objections, name+" exists, but no Secret requests it")
		}
	}
	return objections
}

// wrong describes the problem with the token that a Secret has requested.
func (t *tokens) wrong(name string) string {
	source, token := t.secret(name), t.token(name)
	kit.Must(t, t.client.Get(t.Context(), client.ObjectKeyFromObject(source), source))
	renewal, err := time.Parse(time.RFC3339, source.Annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp])
	expires := expiry(token)
	switch {
	case token == "":
		return "no token found"
	case token == t.former[name]:
		return "the token was not renewed"
	case err != nil || renewal.Before(time.Now()) || !renewal.Before(expires):
		return fmt.Sprintf("the token is due for renewal at %s and expires at %s: %v", renewal, expires, err)
	case name == "synced" && tokenIn(source.Data) != "":
		return "the source also has the token"
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"gardener"}}}
	kit.Must(t, t.client.Create(t.Context(), review))
	if want := "system:serviceaccount:" + t.namespace + ":" + name; !review.Status.Authenticated || review.Status.User.Username != want {
		return fmt.Sprintf("the API server authenticates the token as %q, %s", review.Status.User.Username, review.Status.Error)
	}
	return ""
}

// expiry returns when a token expires, or the zero time if it is not a token.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}

// names returns "<resource>/<name>" of all Secrets and ServiceAccounts.
func (t *tokens) names() []string {
	t.Helper()
	var names []string
	secrets, accounts := &corev1.SecretList{}, &corev1.ServiceAccountList{}
	kit.Must(t, t.client.List(t.Context(), secrets, client.InNamespace(t.namespace)))
	kit.Must(t, t.client.List(t.Context(), accounts, client.InNamespace(t.namespace)))
	for _, secret := range secrets.Items {
		names = append(names, "secrets/"+secret.Name)
	}
	for _, account := range accounts.Items {
		names = append(names, "serviceaccounts/"+account.Name)
	}
	slices.Sort(names)
	return names
}

func (t *tokens) picture() string {
	t.Helper()
	lines := t.names()
	secrets := &corev1.SecretList{}
	kit.Must(t, t.client.List(t.Context(), secrets, client.InNamespace(t.namespace)))
	for _, secret := range secrets.Items {
		lines = append(lines, fmt.Sprintf("%s: %v, %v, %v", secret.Name, slices.Sorted(maps.Keys(secret.Data)),
			slices.Sorted(maps.Keys(secret.Labels)), slices.Sorted(maps.Keys(secret.Annotations))))
	}
	return strings.Join(lines, "\n")
}

// attest checks that no token in use is removed, that no Secret reports a renewal while it has the former token,
// and that no requested object is deleted.
func (t *tokens) attest(c call, body []byte) {
	t.mu.Lock()
	former, source := t.former[c.name], t.going[c.resource+"/"+c.name]
	t.mu.Unlock()
	switch {
	case c.verb == "delete":
		if source == "" || t.exists(source) {
			t.violate("%s deletes the object that %q requests", c, source)
		}
	case c.resource == "secrets" && c.verb == "patch":
		t.attestSecret(c, body, former)
	}
}

func (t *tokens) attestSecret(c call, body []byte, former string) {
	var patch struct {
		Metadata metav1.ObjectMeta  `json:"metadata"`
		Data     map[string]*[]byte `json:"data"`
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		t.violate("%s: %v", c, err)
		return
	}
	data, renewed := map[string][]byte{}, patch.Metadata.Annotations[resourcesv1alpha1.AnnotationTokenRenewTimestamp] != ""
	for key, value := range patch.Data {
		if value == nil {
			data[key] = nil
			continue
		}
		data[key] = *value
	}
	_, hasToken := data["token"]
	_, hasKubeconfig := data["kubeconfig"]
	token := tokenIn(data)
	switch {
	case patch.Metadata.ResourceVersion == "":
		t.violate("%s writes unconditionally", c)
	case c.name == "synced":
		if now := t.token("synced"); renewed && (now == "" || now == former) {
			t.violate("%s reports a renewal, but the token is not new", c)
		}
	case (hasToken || hasKubeconfig || renewed) && (expiry(token).IsZero() || token == former):
		t.violate("%s does not write a new token", c)
	}
}

func (t *tokens) exists(secret string) bool {
	err := t.client.Get(t.always(), types.NamespacedName{Namespace: t.namespace, Name: secret}, &corev1.Secret{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.violate("cannot read Secret %s: %v", secret, err)
	}
	return err == nil
}
