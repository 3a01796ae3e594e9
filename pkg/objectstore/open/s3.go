package open

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/trellis-k8s/trellis/pkg/objectstore/s3"
)

// responseTimeout limits the time to the first byte of a response. The transfer of a large object has no limit of its own.
const responseTimeout = 60 * time.Second

// openS3 opens a bucket in a store with the API of S3.
func openS3(ctx context.Context, name string, data map[string][]byte) (*blob.Bucket, error) {
	if len(data[s3.KeyAccessKeyID]) == 0 {
		return nil, fmt.Errorf("the key %s is missing", s3.KeyAccessKeyID)
	}
	options, transport, err := s3.Options(data, "")
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout = responseTimeout
	options.HTTPClient = &http.Client{Transport: transport}
	return s3blob.OpenBucket(ctx, awss3.New(options), name, &s3blob.Options{
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})
}
