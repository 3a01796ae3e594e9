// Package s3 configures clients of stores with the API of S3.
package s3

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/trellis-k8s/trellis/pkg/objectstore"
)

// Keys of credentials for S3, which are those of etcd-backup-restore.
const (
	KeyAccessKeyID     = objectstore.KeyAccessKeyID
	KeySecretAccessKey = "secretAccessKey"
	KeyRegion          = "region"
	KeyEndpoint        = "endpoint"
	KeyForcePathStyle  = "s3ForcePathStyle"
	KeyTrustedCACert   = "trustedCaCert"
)

// DefaultRegion is the region of stores other than Amazon's, which often have no regions. Buckets in it are created without
// a location constraint.
const DefaultRegion = "us-east-1"

// Options returns the options of a client for credentials and the declared region of a bucket. Errors name the invalid
// keys, and contain no values. The caller sets an HTTP client with timeouts and the returned transport.
func Options(data map[string][]byte, region string) (s3.Options, *http.Transport, error) {
	endpoint, pathStyle := string(data[KeyEndpoint]), false
	var errs []error
	if len(data[KeySecretAccessKey]) == 0 {
		errs = append(errs, fmt.Errorf("the key %s is missing", KeySecretAccessKey))
	}
	at, err := url.Parse(endpoint)
	if endpoint != "" && (err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || at.User != nil) {
		errs = append(errs, fmt.Errorf("the key %s must be a URL such as https://s3.example.org", KeyEndpoint))
	}
	if text := string(data[KeyForcePathStyle]); text != "" {
		var err error
		if pathStyle, err = strconv.ParseBool(text); err != nil {
			errs = append(errs, fmt.Errorf("the key %s must be true or false", KeyForcePathStyle))
		}
	}
	transport, err := Transport(data[KeyTrustedCACert])
	if err := errors.Join(append(errs, err)...); err != nil {
		return s3.Options{}, nil, err
	}
	options := s3.Options{
		Region:       regionOf(data, region),
		Credentials:  credentials.NewStaticCredentialsProvider(string(data[KeyAccessKeyID]), string(data[KeySecretAccessKey]), ""),
		UsePathStyle: pathStyle,
		// Some stores do not support Amazon's checksums.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if endpoint != "" {
		options.BaseEndpoint = &endpoint
	}
	return options, transport, nil
}

// regionOf returns the region of a bucket: the one in the credentials, otherwise the declared one. The declared regions of a
// store other than Amazon's need not be regions of the store.
func regionOf(data map[string][]byte, declared string) string {
	if len(data[KeyEndpoint]) > 0 {
		declared = ""
	}
	return cmp.Or(string(data[KeyRegion]), declared, DefaultRegion)
}

// Transport returns a transport that trusts the certificates in a PEM bundle, or those of the system if it is empty.
func Transport(bundle []byte) (*http.Transport, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default HTTP transport was replaced by one that cannot be cloned")
	}
	transport := base.Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if len(bundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("the key %s has no certificates", KeyTrustedCACert)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return transport, nil
}
