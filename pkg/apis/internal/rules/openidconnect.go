package rules

import (
	"crypto/x509"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var signatureAlgorithms = []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"}

// OpenIDConnect checks what kube-apiserver needs to trust the tokens of an issuer. The path is that of the object with the fields.
func OpenIDConnect(clientID, issuerURL string, caBundle *string, algorithms []string, path *field.Path) field.ErrorList {
	errs := Required(clientID, path.Child("clientID"))
	if missing := Required(issuerURL, path.Child("issuerURL")); missing != nil {
		errs = append(errs, missing...)
	} else if issuer, err := url.Parse(issuerURL); err != nil || issuer.Scheme != "https" || issuer.Host == "" {
		errs = append(errs, field.Invalid(path.Child("issuerURL"), issuerURL, "must be a URL with the scheme https"))
	}
	if caBundle != nil && !x509.NewCertPool().AppendCertsFromPEM([]byte(*caBundle)) {
		errs = append(errs, field.Invalid(path.Child("caBundle"), "", "must have certificates in PEM format"))
	}
	errs = append(errs, UniqueValues(algorithms, path.Child("signingAlgs"))...)
	for i, algorithm := range algorithms {
		errs = append(errs, OneOf(algorithm, path.Child("signingAlgs").Index(i), signatureAlgorithms...)...)
	}
	return errs
}
