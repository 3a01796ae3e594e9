# The image of the resource-manager: one static program that runs as the user nobody, and its SBOM. Two builds of the
# same sources are identical byte by byte (make image-root does the same as the first stage, without an engine).
#
#   docker build --build-arg VERSION=v1.2.3 --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) -t resource-manager:v1.2.3 .
FROM golang:1.26.8 AS build
ARG VERSION=dev
ARG SOURCE_DATE_EPOCH=0
WORKDIR /src
COPY go.mod go.sum ./
COPY hack/tools/go.mod hack/tools/go.sum hack/tools/
RUN go mod download && cd hack/tools && go mod download
COPY . .
RUN make image-root IMAGE_ROOT=/image VERSION=$VERSION SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH

# No authorities of the Internet are in it: kubeconfigs and Pods have that of their own cluster. docs/installation.md says what to do otherwise.
FROM scratch
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/resource-manager"]
