# docker build -t detmap . && docker run --rm -v "$PWD:/data" detmap eval TRUTH DETECTIONS
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
WORKDIR /detmap
COPY .gitignore pyproject.toml README.md LICENSE ./
COPY configs configs
COPY datasets datasets
COPY tools tools
COPY detmap detmap
RUN pip wheel --no-cache-dir --no-deps -w /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[all]" && rm -r /wheels && useradd --create-home detmap
USER detmap
WORKDIR /data
ENTRYPOINT ["detmap"]
CMD ["--help"]
