package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/extension"
	settings "github.com/trellis-k8s/trellis/pkg/objectstore/s3"
)

// Keys of credentials for S3.
const (
	KeyAccessKeyID     = settings.KeyAccessKeyID
	KeySecretAccessKey = settings.KeySecretAccessKey
	KeyRegion          = settings.KeyRegion
	KeyEndpoint        = settings.KeyEndpoint
	KeyForcePathStyle  = settings.KeyForcePathStyle
	KeyTrustedCACert   = settings.KeyTrustedCACert
)

const (
	// requestTimeout limits each request.
	requestTimeout = 30 * time.Second
	// attempts is the number of attempts for each request. The controller also retries.
	attempts = 2
)

// Error codes for a bucket that does not exist: in general, and for requests whose responses have no body.
const (
	codeNoSuchBucket = "NoSuchBucket"
	codeNotFound     = "NotFound"
)

// s3Store is a store with the API of S3.
type s3Store struct {
	client *s3.Client
	region string
	// own is set for a store other than Amazon's.
	own bool
}

var _ Store = &s3Store{}

// newS3 returns the store for credentials and the declared region of a bucket. Errors name the invalid keys.
func newS3(data map[string][]byte, region string) (*s3Store, error) {
	options, transport, err := settings.Options(data, region)
	if err != nil {
		return nil, extension.ConfigurationProblem(err)
	}
	transport.DisableKeepAlives = true // only few requests are sent to a store
	options.HTTPClient = &http.Client{Transport: transport, Timeout: requestTimeout}
	options.RetryMaxAttempts = attempts
	return &s3Store{client: s3.New(options), region: options.Region, own: options.BaseEndpoint != nil}, nil
}

// Create creates a bucket if it does not exist.
func (s *s3Store) Create(ctx context.Context, bucket string) error {
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
	if err == nil {
		return nil
	}
	if codeOf(err) != codeNotFound {
		return failed(err, "look for bucket %s", bucket)
	}
	input := &s3.CreateBucketInput{Bucket: &bucket}
	if !s.own && s.region != settings.DefaultRegion {
		input.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(s.region)}
	}
	if _, err := s.client.CreateBucket(ctx, input); err != nil {
		return failed(err, "create bucket %s", bucket)
	}
	return nil
}

// Delete deletes a bucket with its contents.
func (s *s3Store) Delete(ctx context.Context, bucket string) error {
	if err := s.empty(ctx, bucket, ""); err != nil {
		return err
	}
	_, err := s.client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
	if err == nil || codeOf(err) == codeNoSuchBucket {
		return nil
	}
	return failed(err, "delete bucket %s", bucket)
}

// DeleteEntry deletes all objects with the name of an entry as prefix.
func (s *s3Store) DeleteEntry(ctx context.Context, bucket, entry string) error {
	if entry == "" || strings.Contains(entry, "/") {
		return extension.ConfigurationProblem(fmt.Errorf("the name of an entry must not be empty or contain a slash: %q", entry))
	}
	return s.empty(ctx, bucket, entry+"/")
}

// empty deletes the objects of a bucket with a prefix. If the context ends before, the next call continues.
func (s *s3Store) empty(ctx context.Context, name, prefix string) error {
	options := &s3blob.Options{RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired}
	bucket, err := s3blob.OpenBucket(ctx, s.client, name, options)
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", name, err)
	}
	defer func() { _ = bucket.Close() }() // nothing to flush
	objects := bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) || err != nil && codeOf(err) == codeNoSuchBucket {
			return nil
		}
		if err != nil {
			return failed(err, "list the objects of bucket %s", name)
		}
		if err := bucket.Delete(ctx, object.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return failed(err, "delete object %s of bucket %s", object.Key, name)
		}
	}
}

// codeOf returns the error code in a response of the store, or an empty string for other errors.
func codeOf(err error) string {
	var answered smithy.APIError
	if errors.As(err, &answered) {
		return answered.ErrorCode()
	}
	return ""
}

// failed returns the error for messages. It omits request IDs, so that the text is the same for the same cause.
func failed(err error, format string, args ...any) error {
	doing := fmt.Sprintf(format, args...)
	var answered smithy.APIError
	if errors.As(err, &answered) {
		return fmt.Errorf("%s: %s: %s", doing, answered.ErrorCode(), answered.ErrorMessage())
	}
	var sending *url.Error
	if errors.As(err, &sending) {
		return fmt.Errorf("%s: the store does not answer: %s", doing, conditiontext.Stable(sending.Error()))
	}
	return fmt.Errorf("%s: %w", doing, err)
}
